local t = {}
for i = 1, 20000 do t[i] = (i * 7919) % 10007 end
table.sort(t)
local s = 0
for i = 1, #t do s = s + t[i] * i % 13 end
local f = assert(io.open("lua.out", "w"))
for i = 1, 1000 do f:write(i, " ", string.format("%.9f", math.sqrt(i)), "\n") end
f:close()
local n = 0
for line in io.lines("lua.out") do n = n + #line end
local step = coroutine.wrap(function() for i = 1, 5 do coroutine.yield(i) end end)
local weak = setmetatable({}, { __mode = "k" })
for i = 1, 1000 do weak[{}] = i end
collectgarbage()
print(s, t[1], n, step() + step(), next(weak), select("#", ("a,b,c"):gsub(",", "%0 ")))
print(pcall(error, { code = 3 }) == false, select(2, pcall(error, "expected", 0)))
print(os.rename("lua.out", "lua.moved"), os.remove("missing"))
print(os.time({ year = 2026, month = 1, day = 1, hour = 12 }), os.getenv("TZ"))
error("the end", 0)
