const fs = require("fs"), crypto = require("crypto"), zlib = require("zlib");
const text = fs.readFileSync("corpus.txt", "utf8"); const n = new Map();
for (const w of text.toLowerCase().match(/[a-z]+/g)) n.set(w, (n.get(w) || 0) + 1);
console.log([...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 4));
console.log(crypto.createHash("sha256").update(text).digest("hex"), zlib.deflateSync(text).length);
let s = 0; for (let i = 0; i < 3e6; i++) s = (s * 31 + i) | 0; console.log(s);
setTimeout(() => { fs.writeFileSync("made.js", "done"); fs.promises.readFile("missing").catch(e => { console.error(e.code); process.exit(9); }); }, 20);
