-- Points of the Mandelbrot set: products, and a branch that is hard to predict.
local inside, n = 0, 220
for row = 0, n - 1 do
    for column = 0, n - 1 do
        local cr, ci, zr, zi, steps = 2 * column / n - 1.5, 2 * row / n - 1, 0, 0, 0
        while steps < 60 and zr * zr + zi * zi < 4 do
            zr, zi, steps = zr * zr - zi * zi + cr, 2 * zr * zi + ci, steps + 1
        end
        if steps == 60 then inside = inside + 1 end
    end
end
print(inside)
