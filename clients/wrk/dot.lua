-- dot.lua - asks dotd for dot products again and again, and checks the bits of every answer.
-- Usage: wrk -t2 -c16 -d10 -s clients/wrk/dot.lua http://127.0.0.1:8080 -- n=1024 body=json
-- README.md beside it lists the settings that may follow the two dashes.
local ffi = require("ffi")

-- name, value when it is not given, and what it may say: words, or a pattern and what that means.
local known = {
    { "n", "1024", "^%d+$", "a number of elements" },
    { "pairs", "4", "^[1-9]%d*$", "a number from 1 on" },
    { "body", "raw", { "raw", "json", "base64", "npy", "form", "oip", "oip-json" } },
    { "dtype", "float32", {
        "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "complex64",
        "complex128",
    } },
    { "accept", "json", { "json", "raw", "npy" } },
    { "layout", "concat", { "concat", "interleaved", "pairs" } },
    { "block", "256", "^[1-9]%d*$", "a number of elements from 1 on" },
    { "batch", "8", "^[1-9]%d*$", "a number from 1 on" },
    { "data", "plain", { "plain", "wide" } },
    { "accuracy", "default", { "default", "exact", "fast" } },
    { "device", "auto", "^[%w:]+$", "a device's name" },
    { "check", "yes", { "yes", "no" } },
}
local settings = {}

-- ---- element types --------------------------------------------------------------------------

-- The bits of a value that a float16, or a bfloat16, is.
local function float16_bits(value)
    if value == 0 then
        return 0
    end
    local fraction, exponent = math.frexp(math.abs(value))
    return (value < 0 and 0x8000 or 0) + (exponent + 14) * 1024 + (fraction * 2 - 1) * 1024
end

local function bfloat16_bits(value)
    return ffi.cast("uint16_t *", ffi.new("float[1]", value))[1]
end

-- Elements are count whole numbers from least on, divided by scale (1 where it is not said). Their type
-- holds each exactly, and float64 every sum of up to 2^32 of their products, in any order: so every
-- answer has known bits, whatever its accuracy. Of the fields, c is for an element or each of its
-- parts, code is NumPy's, model and datatype are the Open Inference Protocol's, where that has the
-- type, and is_wide says that it holds 2^60.
local function fractions(row)
    row.least, row.count, row.scale = -1023, 2047, 1024
    return row
end

local function integers(row)
    row.is_whole, row.least, row.count = true, row.least or -1023, row.count or 2047
    return row
end

local types = {
    float16 = fractions({ c = "uint16_t", bits = float16_bits, code = "<f2", model = "dot_fp16",
        datatype = "FP16" }),
    bfloat16 = { least = -127, count = 255, scale = 128, c = "uint16_t", bits = bfloat16_bits,
        code = "<V2", model = "dot_bf16", datatype = "BF16", is_wide = true },
    float32 = fractions({ c = "float", code = "<f4", model = "dot", datatype = "FP32",
        is_wide = true }),
    float64 = fractions({ c = "double", code = "<f8", model = "dot_fp64", datatype = "FP64",
        is_wide = true }),
    int8 = integers({ least = -127, count = 255, c = "int8_t", code = "|i1", model = "dot_int8",
        datatype = "INT8" }),
    uint8 = integers({ least = 0, count = 256, c = "uint8_t", code = "|u1" }),
    int32 = integers({ c = "int32_t", code = "<i4" }),
    int64 = integers({ c = "int64_t", code = "<i8" }),
    complex64 = fractions({ parts = 2, c = "float", code = "<c8", is_wide = true }),
    complex128 = fractions({ parts = 2, c = "double", code = "<c16", is_wide = true }),
}
for _, dtype in pairs(types) do
    dtype.parts, dtype.scale = dtype.parts or 1, dtype.scale or 1
end

-- ---- vectors and what they give -------------------------------------------------------------

-- The parts of n elements, as doubles.
local function vector(dtype, n, factor, turn)
    local parts = ffi.new("double[?]", n * dtype.parts + 1)
    for i = 0, n * dtype.parts - 1 do
        parts[i] = (dtype.least + (i * factor + turn * 97) % dtype.count) / dtype.scale
    end
    return parts
end

local function sum_real(a, b, n)
    local sum = 0
    for i = 0, n - 1 do
        sum = sum + a[i] * b[i]
    end
    return sum, 0
end

local function sum_complex(a, b, n)
    local real, imaginary = 0, 0
    for i = 0, 2 * n - 2, 2 do
        real = real + (a[i] * b[i] - a[i + 1] * b[i + 1])
        imaginary = imaginary + (a[i] * b[i + 1] + a[i + 1] * b[i])
    end
    return real, imaginary
end

-- The first product becomes value, the last one -value.
local function set_ends(dtype, a, b, n, value)
    local last = (n - 1) * dtype.parts
    a[0], b[0], a[last], b[last] = value, 1, -value, 1
    if dtype.parts == 2 then
        a[1], b[1], a[last + 1], b[last + 1] = 0, 0, 0, 0
    end
end

-- Every 8 bytes as JSON tells bits.
local function bits_text(bytes)
    local words = {}
    for i = 1, #bytes, 8 do
        local digits = bytes:sub(i, i + 7):reverse():gsub(".", function(byte)
            return string.format("%02x", byte:byte())
        end)
        table.insert(words, "0x" .. digits)
    end
    return table.concat(words, ",")
end

-- Two vectors, and their dot product in every form in which an answer may have it.
local function make_pair(dtype, n, turn)
    local a, b = vector(dtype, n, 389, turn), vector(dtype, n, 613, turn)
    local is_wide = settings.data == "wide" and n > 1
    if is_wide then
        set_ends(dtype, a, b, n, 0)
    end
    local real, imaginary = (dtype.parts == 2 and sum_complex or sum_real)(a, b, n)
    if is_wide then
        set_ends(dtype, a, b, n, 2 ^ 60)
    end
    local result = ffi.new(dtype.is_whole and "int64_t[2]" or "double[2]", real, imaginary)
    local bytes = ffi.string(result, 8 * dtype.parts)
    local expected = { value = real, bytes = bytes, text = bits_text(bytes) }
    return { a = a, b = b, n = n, expected = expected }
end

-- Pairs of more and more elements, n in the last, and what all of them give.
local function make_batch(dtype, n, turn)
    local batch, results, count = {}, {}, tonumber(settings.batch)
    for i = 1, count do
        batch[i] = make_pair(dtype, math.floor(n * i / count), turn * count + i)
        results[i] = batch[i].expected.bytes
    end
    local bytes = table.concat(results)
    batch.expected = { bytes = bytes, text = bits_text(bytes) }
    return batch
end

-- ---- bodies ---------------------------------------------------------------------------------

-- Both machines at the ends of the wire are little-endian, as raw elements are.
local function raw_elements(dtype, parts, n)
    local count = n * dtype.parts
    local elements = ffi.new(dtype.c .. "[?]", count)
    for i = 0, count - 1 do
        elements[i] = dtype.bits and dtype.bits(parts[i]) or parts[i]
    end
    return ffi.string(elements, ffi.sizeof(elements))
end

local function json_elements(dtype, parts, n)
    local texts = {}
    for i = 0, n - 1 do
        texts[i + 1] = dtype.parts == 1 and string.format("%.17g", parts[i])
            or string.format("[%.17g,%.17g]", parts[2 * i], parts[2 * i + 1])
    end
    return "[" .. table.concat(texts, ",") .. "]"
end

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function digit(sextet)
    return alphabet:sub(sextet + 1, sextet + 1)
end

local function base64(bytes)
    local texts, missing = {}, -#bytes % 3
    bytes = bytes .. ("\0"):rep(missing)
    for i = 1, #bytes, 3 do
        local x, y, z = bytes:byte(i, i + 2)
        texts[#texts + 1] = digit(math.floor(x / 4)) .. digit(x % 4 * 16 + math.floor(y / 16))
            .. digit(y % 16 * 4 + math.floor(z / 64)) .. digit(z % 64)
    end
    local text = table.concat(texts)
    return text:sub(1, #text - missing) .. ("="):rep(missing)
end

-- As numpy.save() writes it: the data begin at a multiple of 64 bytes.
local function npy(dtype, parts, n)
    local format = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }"
    local head = string.format(format, dtype.code, n)
    head = head .. (" "):rep(63 - (10 + #head) % 64) .. "\n"
    local size = string.char(#head % 256, math.floor(#head / 256))
    return "\147NUMPY\1\0" .. size .. head .. raw_elements(dtype, parts, n)
end

-- Blocks of a and of b in turn.
local function interleave(a, b, block_bytes)
    local blocks = {}
    for i = 1, #a, block_bytes do
        table.insert(blocks, a:sub(i, i + block_bytes - 1))
        table.insert(blocks, b:sub(i, i + block_bytes - 1))
    end
    return table.concat(blocks)
end

-- How many pairs, how long each is, then their elements.
local function pairs_body(dtype, batch)
    local counts, elements = ffi.new("uint64_t[?]", 1 + #batch), {}
    counts[0] = #batch
    for i, pair in ipairs(batch) do
        counts[i] = pair.n
        table.insert(elements, raw_elements(dtype, pair.a, pair.n))
        table.insert(elements, raw_elements(dtype, pair.b, pair.n))
    end
    return ffi.string(counts, ffi.sizeof(counts)) .. table.concat(elements)
end

local function raw_body(dtype, pair)
    if settings.layout == "pairs" then
        return pairs_body(dtype, pair)
    end
    local a, b = raw_elements(dtype, pair.a, pair.n), raw_elements(dtype, pair.b, pair.n)
    if settings.layout == "concat" or pair.n == 0 then
        return a .. b
    end
    return interleave(a, b, settings.block * (#a / pair.n))
end

local function json_body(dtype, pair)
    local a, b = json_elements(dtype, pair.a, pair.n), json_elements(dtype, pair.b, pair.n)
    return string.format('{"a":%s,"b":%s}', a, b)
end

local function base64_body(dtype, pair)
    local operands = {}
    for _, name in ipairs({ "a", "b" }) do
        local text = base64(raw_elements(dtype, pair[name], pair.n))
        local format = '"%s":{"base64":"%s","dtype":"%s"}'
        table.insert(operands, string.format(format, name, text, settings.dtype))
    end
    return "{" .. table.concat(operands, ",") .. "}"
end

local function npy_body(dtype, pair)
    return npy(dtype, pair.a, pair.n) .. npy(dtype, pair.b, pair.n)
end

local boundary = "dotd-wrk-9f3c61a0b7e24d58"

local function form_body(dtype, pair)
    local parts = {}
    for _, name in ipairs({ "a", "b" }) do
        local head = '--%s\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n'
        table.insert(parts, string.format(head, boundary, name, name))
        table.insert(parts, raw_elements(dtype, pair[name], pair.n))
        table.insert(parts, "\r\n")
    end
    return table.concat(parts) .. "--" .. boundary .. "--\r\n"
end

-- An inference: the JSON, then the tensors that are not in it. The second value is the JSON's size.
local function oip_body(dtype, pair)
    local is_binary = settings.body == "oip"
    local inputs, tensors = {}, {}
    for _, name in ipairs({ "a", "b" }) do
        local data
        if is_binary then
            table.insert(tensors, raw_elements(dtype, pair[name], pair.n))
            data = string.format('"parameters":{"binary_data_size":%d}', #tensors[#tensors])
        else
            data = '"data":' .. json_elements(dtype, pair[name], pair.n)
        end
        local format = '{"name":"%s","shape":[%d],"datatype":"%s",%s}'
        table.insert(inputs, string.format(format, name, pair.n, dtype.datatype, data))
    end
    local more = settings.accept == "raw" and ',"parameters":{"binary_data_output":true}' or ""
    local json = string.format('{"inputs":[%s]%s}', table.concat(inputs, ","), more)
    return json .. table.concat(tensors), is_binary and #json or nil
end

local media = {
    json = "application/json",
    raw = "application/octet-stream",
    npy = "application/x-npy",
}

local bodies = {
    raw = { make = raw_body, kind = media.raw },
    json = { make = json_body, kind = media.json },
    base64 = { make = base64_body, kind = media.json },
    npy = { make = npy_body, kind = media.npy },
    form = { make = form_body, kind = "multipart/form-data; boundary=" .. boundary },
    oip = { make = oip_body, kind = media.raw, is_oip = true },
    ["oip-json"] = { make = oip_body, kind = media.json, is_oip = true },
}

-- ---- answers --------------------------------------------------------------------------------

local function bits_in_json(body)
    local told = body:match('"bits":%s*"(0x%x+)"') or body:match('"bits":%s*(%b[])')
    return told and told:gsub('[%s"%[%]]', "")
end

local function bytes_of_npy(body)
    if body:sub(1, 8) ~= "\147NUMPY\1\0" or #body < 10 then
        return nil
    end
    local low, high = body:byte(9, 10)
    return body:sub(11 + low + 256 * high)
end

local function value_in_json(body)
    return tonumber(body:match('"data":%s*%[%s*([-+%d.eE]+)%s*%]'))
end

local function bytes_behind_json(body, headers)
    local size = tonumber(headers["Inference-Header-Content-Length"])
    return size and body:sub(size + 1)
end

-- as: the form in which what was made has the same; result(body, headers) may be nil.
local answers = {
    json = { as = "text", result = bits_in_json },
    raw = { as = "bytes", result = function(body) return body end },
    npy = { as = "bytes", result = bytes_of_npy },
}
local oip_answers = {
    json = { as = "value", result = value_in_json },
    raw = { as = "bytes", result = bytes_behind_json },
}

-- What a refusal says went wrong; anything else as it is.
local function detail_of(body)
    local detail = body:match('"detail":%s*"(.-[^\\])"') or body:match('"error":%s*"(.-[^\\])"')
    return detail and detail:gsub('\\(["\\/])', "%1") or body
end

local function show(result, as)
    if result == nil then
        return "no result"
    end
    return as == "bytes" and bits_text(result:sub(1, 16)) or tostring(result)
end

local form -- of the answers: a row of the tables above
local expected = {} -- by the number of the pair, which an answer repeats from its request

local function check_answer(status, headers, body)
    if status < 200 or status > 299 then
        refused = refused + 1
        first_refused = first_refused or status .. " " .. detail_of(body)
        return
    end
    local asked = expected[tonumber(headers["X-Request-Id"])] or {}
    local wanted, result = asked[form.as], form.result(body, headers)
    if wanted ~= nil and result == wanted then
        right = right + 1
        return
    end
    wrong = wrong + 1
    first_wrong = first_wrong
        or show(result, form.as) .. " instead of " .. show(wanted, form.as)
end

-- ---- settings -------------------------------------------------------------------------------

-- Leaves at once: an error in init() would be a panic of Lua's.
local function refuse(...)
    io.stderr:write("dot.lua: ", string.format(...), "\n")
    os.exit(1)
end

local function is_allowed(value, words)
    for _, word in ipairs(words) do
        if value == word then
            return true
        end
    end
    return false
end

local function find(name)
    local names = {}
    for _, row in ipairs(known) do
        if row[1] == name then
            return row[3], row[4]
        end
        table.insert(names, row[1])
    end
    refuse("unknown setting %s; known are %s", name, table.concat(names, ", "))
end

local function set(name, value)
    local allowed, what = find(name)
    if what == nil and not is_allowed(value, allowed) then
        refuse("%s must be %s, not %s", name, table.concat(allowed, " or "), value)
    elseif what ~= nil and not value:match(allowed) then
        refuse("%s must be %s, not %s", name, what, value)
    end
    settings[name] = value
end

local function read_settings(args)
    for _, row in ipairs(known) do
        settings[row[1]] = row[2]
    end
    for _, arg in ipairs(args) do
        local name, value = arg:match("^(.-)=(.*)$")
        set(name or arg, value or "")
    end
end

local function check_together(dtype, is_oip)
    if is_oip and dtype.model == nil then
        refuse("the Open Inference Protocol has no model of %s", settings.dtype)
    elseif is_oip and settings.accept == "npy" then
        refuse("the Open Inference Protocol answers json or raw, not npy")
    elseif settings.layout ~= "concat" and settings.body ~= "raw" then
        refuse("layout is for body=raw")
    elseif settings.data == "wide" and not dtype.is_wide then
        refuse("%s holds no 2^60, which data=wide wants", settings.dtype)
    end
end

local function target_of(dtype, is_oip)
    local target = is_oip and "/v2/models/" .. dtype.model .. "/infer?"
        or "/v1/dot?dtype=" .. settings.dtype .. "&"
    target = target .. "device=" .. settings.device
    if settings.accuracy ~= "default" then
        target = target .. "&accuracy=" .. settings.accuracy
    end
    if settings.layout == "interleaved" then
        target = target .. "&layout=interleaved;block=" .. settings.block
    elseif settings.layout == "pairs" then
        target = target .. "&layout=pairs"
    end
    return target
end

-- ---- what wrk calls -------------------------------------------------------------------------

local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

-- Globals of each thread: done() reads the counts through thread:get(), wrk looks for request and
-- response. One pair, or batch of them, is one request, which wrk sends without asking for it each
-- time.
function init(args)
    read_settings(args)
    local dtype, body = types[settings.dtype], bodies[settings.body]
    check_together(dtype, body.is_oip)
    checked, right, wrong, refused = settings.check ~= "no", 0, 0, 0
    form = (body.is_oip and oip_answers or answers)[settings.accept]
    wrk.method, wrk.path = "POST", target_of(dtype, body.is_oip)
    wrk.headers["Content-Type"] = body.kind
    wrk.headers["Accept"] = not body.is_oip and media[settings.accept] or nil
    local make, requests = settings.layout == "pairs" and make_batch or make_pair, {}
    for turn = 1, checked and tonumber(settings.pairs) or 1 do
        local pair = make(dtype, tonumber(settings.n), turn)
        local json_size
        wrk.body, json_size = body.make(dtype, pair)
        wrk.headers["Inference-Header-Content-Length"] = json_size
        wrk.headers["X-Request-Id"] = checked and turn or nil
        expected[turn], requests[turn] = pair.expected, wrk.format()
    end
    local turn = 0
    if #requests > 1 then
        request = function()
            turn = turn % #requests + 1
            return requests[turn]
        end
    end
    response = checked and check_answer or nil
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
    local is_checked = threads[1]:get("checked")
    local bad = is_checked and count("refused") or errors.status
    local unread = summary.requests - bad - count("right") - count("wrong")
    local tally = string.format("%d right, %d wrong", count("right"), count("wrong"))
    if unread > 0 or not is_checked then
        tally = unread .. " not checked"
    end
    io.write(string.format("answers: %s, %d not 2xx, %d socket errors\n", tally, bad, broken))
    io.write(string.format("speed: %.0f requests/s, p50 %d us, p99 %d us\n",
        summary.requests / (summary.duration / 1e6),
        latency:percentile(50), latency:percentile(99)))
    for _, name in ipairs({ "first_wrong", "first_refused" }) do
        if first(name) ~= nil then
            io.write(name:gsub("_", " "), ": ", first(name), "\n")
        end
    end
    if bad > 0 or broken > 0 or count("wrong") > 0 or (is_checked and unread > 0) then
        os.exit(1)
    end
end
