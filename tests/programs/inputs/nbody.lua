-- The planets of the solar system, step by step: floating point with divisions and square roots.
local sqrt, pi = math.sqrt, math.pi
local year, mass = 365.24, 4 * math.pi * math.pi
local bodies = {
    { 0, 0, 0, 0, 0, 0, mass },
    { 4.841, -1.16, -0.103, 0.00166 * year, 0.0077 * year, -0.000069 * year, 0.000954 * mass },
    { 8.343, 4.125, -0.4035, -0.00277 * year, 0.005 * year, 0.000023 * year, 0.000286 * mass },
    { 12.89, -15.11, -0.2233, 0.00297 * year, 0.00238 * year, -0.00003 * year, 0.0000437 * mass },
    { 15.38, -25.92, 0.1793, 0.00268 * year, 0.00163 * year, -0.000095 * year, 0.0000515 * mass },
}
local function advance(dt)
    for i = 1, #bodies do
        local a = bodies[i]
        for j = i + 1, #bodies do
            local b = bodies[j]
            local x, y, z = a[1] - b[1], a[2] - b[2], a[3] - b[3]
            local square = x * x + y * y + z * z
            local strength = dt / (square * sqrt(square))
            local on_a, on_b = b[7] * strength, a[7] * strength
            a[4], a[5], a[6] = a[4] - x * on_a, a[5] - y * on_a, a[6] - z * on_a
            b[4], b[5], b[6] = b[4] + x * on_b, b[5] + y * on_b, b[6] + z * on_b
        end
    end
    for _, a in ipairs(bodies) do
        a[1], a[2], a[3] = a[1] + dt * a[4], a[2] + dt * a[5], a[3] + dt * a[6]
    end
end
for _ = 1, 25000 do advance(0.01) end
print(string.format("%.9f", bodies[1][1] + bodies[2][2]))
