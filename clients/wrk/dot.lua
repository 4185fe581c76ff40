-- dot.lua - asks dotd for the same dot product again and again, and checks every answer.
-- Usage: wrk -t2 -c16 -d10 -s clients/wrk/dot.lua http://127.0.0.1:8080 -- n=1024 body=json
-- README.md beside it lists the settings that may follow the two dashes.
local ffi = require("ffi")

local settings = {
    n = "1024", -- elements of each vector
    body = "raw", -- raw or json
    dtype = "float32", -- float32 or float64
    device = "auto", -- auto, cpu, cuda, cuda:1
    accept = "json", -- json or raw: how answers come back
    check = "yes", -- no: only count them, which costs wrk less
}

-- What the settings with few values may say; n is a number of elements, device is for dotd to judge.
local choices = {
    body = { "raw", "json" },
    dtype = { "float32", "float64" },
    accept = { "json", "raw" },
    check = { "yes", "no" },
}

local threads = {}

-- Multiples of 1/1024 between -1 and 1, about ten digits in JSON: exact in both types, and so is
-- every partial sum in float64, in any order, up to n = 2^32.
local function a(i)
    return (i * 389 % 2047 - 1023) / 1024
end

local function b(i)
    return (i * 613 % 2047 - 1023) / 1024
end

-- Leaves at once: an error in init() would be a panic of Lua's.
local function refuse(...)
    io.stderr:write("dot.lua: ", string.format(...), "\n")
    os.exit(1)
end

local function check_setting(name, value)
    if name == "n" and not value:match("^%d+$") then
        refuse("n must be a number of elements, not %s", value)
    end
    for _, choice in ipairs(choices[name] or { value }) do
        if value == choice then
            return
        end
    end
    refuse("%s must be %s, not %s", name, table.concat(choices[name], " or "), value)
end

local function read_settings(args)
    for _, arg in ipairs(args) do
        local name, value = arg:match("^(%w+)=(.*)$")
        if name == nil or settings[name] == nil then
            refuse("unknown setting %s; known are n, body, dtype, device, accept, check", arg)
        end
        check_setting(name, value)
        settings[name] = value
    end
end

local function expected_sum(n)
    local sum = 0
    for i = 0, n - 1 do
        sum = sum + a(i) * b(i)
    end
    return sum
end

-- Both machines at the ends of the wire are little-endian, as the raw form is.
local function raw_body(n)
    local elements = ffi.new(settings.dtype == "float64" and "double[?]" or "float[?]", 2 * n)
    for i = 0, n - 1 do
        elements[i], elements[n + i] = a(i), b(i)
    end
    return ffi.string(elements, ffi.sizeof(elements))
end

local function json_body(n)
    local left, right = {}, {}
    for i = 0, n - 1 do
        left[i + 1], right[i + 1] = tostring(a(i)), tostring(b(i))
    end
    return '{"a":[' .. table.concat(left, ",") .. '],"b":[' .. table.concat(right, ",") .. "]}"
end

local function result_of(body)
    if settings.accept == "raw" then
        return #body == 8 and ffi.cast("const double *", body)[0] or nil
    end
    return tonumber(body:match('"result":%s*([-+%d.eE]+)'))
end

-- What a problem document says went wrong; anything else as it is.
local function detail_of(body)
    local detail = body:match('"detail":%s*"(.-[^\\])"')
    return detail and detail:gsub('\\(["\\/])', "%1") or body
end

local function check_answer(status, _, body)
    if status < 200 or status > 299 then
        refused = refused + 1
        refusal = refusal or status .. " " .. detail_of(body)
    elseif result_of(body) == expected then
        right = right + 1
    else
        wrong = wrong + 1
    end
end

function setup(thread)
    table.insert(threads, thread)
end

-- Globals of each thread: done() reads the counts through thread:get(), wrk looks for response.
function init(args)
    read_settings(args)
    local n = tonumber(settings.n)
    expected, right, wrong, refused = expected_sum(n), 0, 0, 0
    wrk.method = "POST"
    wrk.path = "/v1/dot?dtype=" .. settings.dtype .. "&device=" .. settings.device
    wrk.body = settings.body == "json" and json_body(n) or raw_body(n)
    wrk.headers["Content-Type"] = settings.body == "json" and "application/json"
        or "application/octet-stream"
    wrk.headers["Accept"] = settings.accept == "raw" and "application/octet-stream"
        or "application/json"
    checked = settings.check ~= "no"
    if checked then
        response = check_answer
    end
end

local function count(name)
    local sum = 0
    for _, thread in ipairs(threads) do
        sum = sum + thread:get(name)
    end
    return sum
end

local function first(name)
    for _, thread in ipairs(threads) do
        local value = thread:get(name)
        if value ~= nil then
            return value
        end
    end
end

function done(summary, latency)
    local errors = summary.errors
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    local bad = threads[1]:get("checked") and count("refused") or errors.status
    local tally = threads[1]:get("checked")
            and string.format("%d right, %d wrong", count("right"), count("wrong"))
        or string.format("%d not checked", summary.requests - bad)
    io.write(string.format("answers: %s, %d not 2xx, %d socket errors\n", tally, bad, broken))
    io.write(string.format("speed: %.0f requests/s, p50 %d us, p99 %d us\n",
        summary.requests / (summary.duration / 1e6),
        latency:percentile(50), latency:percentile(99)))
    if first("refusal") ~= nil then
        io.write("first that is not 2xx: ", first("refusal"), "\n")
    end
    if bad > 0 or broken > 0 or count("wrong") > 0 then
        os.exit(1)
    end
end
