-- Trees and tables of integers, sorted and searched: calls, and memory that is collected.
local function tree(depth)
    if depth == 0 then return {} end
    return { tree(depth - 1), tree(depth - 1) }
end
local function count(node) return node[1] and 1 + count(node[1]) + count(node[2]) or 1 end
local total = 0
for depth = 4, 11 do total = total + count(tree(depth)) end
local list, seed = {}, 1
for i = 1, 20000 do
    seed = seed * 1103515245 % 2147483648 + 12345
    list[i] = seed % 100003
end
table.sort(list)
local words = {}
for i = 1, 20000 do
    local word = "w" .. list[i] % 3000
    words[word] = (words[word] or 0) + 1
end
print(total, list[10000], words.w77)
