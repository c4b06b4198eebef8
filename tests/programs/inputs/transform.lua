-- Fourier transforms of 16,384 points, there and back: sines, and strides of every power of two.
local ffi = require "ffi"
local n = 16384
local re, im = ffi.new("double[?]", n), ffi.new("double[?]", n)
for i = 0, n - 1 do re[i], im[i] = math.sin(i * 0.37), 0 end
local function transform(sign)
    local j = 0
    for i = 0, n - 2 do
        if i < j then
            re[i], re[j], im[i], im[j] = re[j], re[i], im[j], im[i]
        end
        local bit = n / 2
        while bit <= j do j, bit = j - bit, bit / 2 end
        j = j + bit
    end
    local half = 1
    while half < n do
        local step = sign * math.pi / half
        for k = 0, half - 1 do
            local c, s = math.cos(step * k), math.sin(step * k)
            for i = k, n - 1, 2 * half do
                local p = i + half
                local x, y = c * re[p] - s * im[p], c * im[p] + s * re[p]
                re[p], im[p], re[i], im[i] = re[i] - x, im[i] - y, re[i] + x, im[i] + y
            end
        end
        half = half * 2
    end
end
for _ = 1, 3 do transform(1) transform(-1) end
print(string.format("%.9e", re[77]))
