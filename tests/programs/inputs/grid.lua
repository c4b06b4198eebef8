-- Heat that spreads over a plane of 4 MiB: a stream of doubles from the caches and from memory.
local ffi = require "ffi"
local n = 512
local now, next = ffi.new("double[?]", n * n), ffi.new("double[?]", n * n)
for i = 0, n - 1 do now[i], next[i] = 100, 100 end
for _ = 1, 12 do
    for y = 1, n - 2 do
        for x = 1, n - 2 do
            local at = y * n + x
            next[at] = 0.25 * (now[at - 1] + now[at + 1] + now[at - n] + now[at + n])
        end
    end
    now, next = next, now
end
print(string.format("%.9f", now[3 * n + 7] + now[5 * n + 200]))
