-- load.lua - sends the same body again and again, and says how often it was answered.
-- Usage: wrk ... -s load.lua URL -- BODY_FILE CONTENT_TYPE [JSON_BYTES of a body of binary tensors]
function init(args)
    local file = assert(io.open(args[1], "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    file:close()
    wrk.headers["Content-Type"] = args[2]
    wrk.headers["Inference-Header-Content-Length"] = args[3]
end

function done(summary)
    local errors = summary.errors
    local bad = errors.connect + errors.read + errors.write + errors.timeout + errors.status
    io.write(string.format("answers: %d in %d us, %d bad\n",
        summary.requests, summary.duration, bad))
end
