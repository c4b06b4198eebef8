-- Words of parts of a text: counted, sorted, replaced, joined. Arguments: a file, parts.
local path, parts = ...
local text = assert(io.open(path)):read("a")
local size, sum = 60000, 0
for part = 1, tonumber(parts) do
  local from = part * 70001 % (#text - size)
  local piece = text:sub(from, from + size)
  local counts, names = {}, {}
  for word in piece:gmatch("%a+") do
    if not counts[word] then names[#names + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  table.sort(names, function(a, b)
    return counts[a] > counts[b] or counts[a] == counts[b] and a < b
  end)
  local most = {}
  for rank = 1, math.min(50, #names) do most[names[rank]] = rank end
  local replaced = piece:gsub("%a+", function(word) return most[word] and "<" .. most[word] .. ">" end)
  local lines = {}
  for line in replaced:gmatch("[^\n]*") do lines[#lines + 1] = line:reverse():upper() end
  sum = (sum * 31 + #table.concat(lines, "\n") + #names) % 1000003
end
print("lua", sum)
