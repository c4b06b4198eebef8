-- The largest singular value of an infinite matrix: divisions, and sums of products.
local function a(i, j)
    local ij = i + j
    return 1 / (ij * (ij + 1) / 2 + i + 1)
end
local function times(n, v, transposed)
    local result = {}
    for i = 0, n - 1 do
        local sum = 0
        for j = 0, n - 1 do
            sum = sum + (transposed and a(j, i) or a(i, j)) * v[j + 1]
        end
        result[i + 1] = sum
    end
    return result
end
local n, u, v = 400, {}, nil
for i = 1, n do u[i] = 1 end
for _ = 1, 4 do
    v = times(n, times(n, u, false), true)
    u = times(n, times(n, v, false), true)
end
local over, under = 0, 0
for i = 1, n do over, under = over + u[i] * v[i], under + v[i] * v[i] end
print(string.format("%.9f", math.sqrt(over / under)))
