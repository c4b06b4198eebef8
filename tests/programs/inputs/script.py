import collections, ctypes, decimal, hashlib, json, os, re, sqlite3, struct, sys, tempfile, threading, zlib, array, queue
words = collections.Counter(re.findall(r"[a-z]+", open("corpus.txt", encoding="utf-8").read().lower()))
print(words.most_common(4)); print(decimal.Decimal(2).sqrt(), struct.pack("<dI", 1.5, 7).hex())
print(hashlib.sha256(json.dumps(sorted(words.items())).encode()).hexdigest(), zlib.crc32(b"x" * 1000))
with sqlite3.connect(":memory:") as base:
    base.execute("create table t (w text, n int)"); base.executemany("insert into t values (?, ?)", words.items())
    print(base.execute("select sum(n), count(*) from t where n > 3").fetchone())
q = queue.Queue(); out = []
def work():
    while (item := q.get()) is not None: out.append(item * item)
ts = [threading.Thread(target=work) for _ in range(3)]
for t in ts: t.start()
for i in range(50): q.put(i)
for t in ts: q.put(None)
for t in ts: t.join()
print(sum(out), ctypes.CDLL(None).labs(-5))
with open("made.bin", "wb") as f: f.write(array.array("d", range(100)).tobytes())
print(sorted(e.name for e in os.scandir(".") if e.name.startswith("made")))
try: open("missing")
except OSError as e: print(e, file=sys.stderr)
sys.exit(4)
