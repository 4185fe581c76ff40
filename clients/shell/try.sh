#!/usr/bin/env bash
# try.sh - every kind of call with curl: shows each call and its answer, and says if one is wrong.
set -u

usage() {
    cat <<'END'
usage: clients/shell/try.sh [URL]

Sends every kind of call with curl, shows each with its answer, and counts those that are right.
The exit status is 0 when all are. URL is by default http://127.0.0.1:8080.
END
}

case ${1:-} in
--help | -h) usage && exit ;;
-*) usage >&2 && exit 2 ;;
esac

base=${1:-http://127.0.0.1:8080}
base=${base%/}
if ! curl -s -o /dev/null --max-time 10 "$base/livez"; then
    printf 'try.sh: nothing answers at %s; deploy/run starts dotd\n' "$base" >&2
    exit 1
fi
dot=$base/v1/dot
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
right=0
wrong=0

# call STATUS PATTERN curl-arguments...: the answer must have that status and match that pattern,
# an extended regular expression over the lines of its headers and body.
call() {
    local status=$1 pattern=$2 answer
    shift 2
    printf '\n$ curl'
    printf ' %q' "$@"
    printf '\n'
    answer=$(curl -sS -i --max-time 30 "$@" 2>&1 | tr -d '\r\0')
    printf '%s\n' "$answer"
    # 100 Continue comes before the answer: the last status line counts.
    if [ "$(grep -aoE '^HTTP/1\.1 [0-9]{3}' <<<"$answer" | tail -n1)" = "HTTP/1.1 $status" ] &&
        grep -aqE "$pattern" <<<"$answer"; then
        right=$((right + 1))
    else
        printf '^^^ WRONG: expected status %s and a match of %s\n' "$status" "$pattern"
        wrong=$((wrong + 1))
    fi
}

# post STATUS PATTERN BODY [curl-arguments...]: a JSON body, the way most people send one.
post() {
    local status=$1 pattern=$2 body=$3
    shift 3
    call "$status" "$pattern" "$@" -d "$body" "$dot"
}

# ask STATUS PATTERN PATH [BODY]: a JSON body to another path; without one a GET.
ask() {
    local status=$1 pattern=$2 path=$3
    shift 3
    call "$status" "$pattern" ${1:+-d "$1"} "$base$path"
}

# raw STATUS PATTERN FILE QUERY [curl-arguments...]: raw elements.
raw() {
    local status=$1 pattern=$2 file=$3 query=$4
    shift 4
    call "$status" "$pattern" "$@" -H 'Content-Type: application/octet-stream' \
        --data-binary "@$folder/$file" "$dot?$query"
}

# One to eight as float32, one to four and five to eight as float64, little-endian.
printf '\0\0\200?\0\0\0@\0\0@@\0\0\200@\0\0\240@\0\0\300@\0\0\340@\0\0\0A' >"$folder/ab.f32"
printf '\0\0\0\0\0\0\360?\0\0\0\0\0\0\0@\0\0\0\0\0\0\10@\0\0\0\0\0\0\20@' >"$folder/ab.f64"
printf '\0\0\0\0\0\0\24@\0\0\0\0\0\0\30@\0\0\0\0\0\0\34@\0\0\0\0\0\0 @' >>"$folder/ab.f64"
printf '1234567' >"$folder/odd"
# Two pairs of int8, of two elements and of one: (1, 2) and (3, 4), (5) and (6).
printf '\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\2\3\4\5\6' >"$folder/pairs.i8"
# (1, 2, 3) and (4, 5, 6) as int8, the way numpy.save() writes them: %b takes one after the other.
printf "\223NUMPY\1\0\67\0{'descr': '|i1', 'fortran_order': False, 'shape': (3,)}%b" \
    '\1\2\3' '\4\5\6' >"$folder/ab.npy"
head -c 68 "$folder/ab.npy" >"$folder/a.npy"
printf '{"a":[1,2,3],"b":[4,5,6]}' | gzip >"$folder/ab.json.gz"
gzip <"$folder/ab.f32" >"$folder/ab.f32.gz"
# {"a":[1],"b":[2]} as zlib stores it: a header, one block as it is, a sum of checking.
printf 'x\1\1\21\0\356\377{"a":[1],"b":[2]})K\4\267' >"$folder/ab.json.deflate"
# An inference: how its tensors lie, then their bytes.
tensor='"shape":[4],"datatype":"FP32","parameters":{"binary_data_size":16}'
printf '{"inputs":[{"name":"a",%s},{"name":"b",%s}]}' "$tensor" "$tensor" >"$folder/inference"
head_size=$(wc -c <"$folder/inference")
cat "$folder/ab.f32" >>"$folder/inference"

# JSON, every form of operands
post 200 '"result": 32\.0' '{"a":[1,2,3],"b":[4,5,6]}'
post 200 '"result": \[12\.0, ?34\.0\]' '{"a":[[1,2],[3,4]],"b":[10,1]}'
post 200 '"shape": \[2, ?3\]' '{"a":[[[1,0]],[[0,1]]],"b":[[1,2],[3,4],[5,6]]}'
post 200 '"result": \[2\.0, ?11\.0\]' '{"pairs":[{"a":[1],"b":[2]},{"a":[1,2],"b":[3,4]}]}'
post 200 '"result": 0\.0' '{"a":[],"b":[]}'
post 200 '"result_text": "Infinity"' '{"a":[Infinity,1],"b":[2,3]}'
post 200 '"id": "r-17"' '{"a":[1],"b":[2],"dtype":"float32","device":"cpu","id":"r-17"}'
post 200 '"condition": 2\.0' '{"a":[3,-1],"b":[1,1],"diagnostics":true}'
post 200 '"accuracy": "exact", "error_bound": 0\.0' '{"a":[1e16,1,-1e16],"b":[1,1,1],"accuracy":"exact"}'
post 200 '"accuracy": "fast", "error_bound": [0-9]' '{"a":[1e16,1,-1e16],"b":[1,1,1],"accuracy":"fast"}'
post 200 '"result": 0\.1, "bits": "0x2e66"' '{"a":[1],"b":[0.1],"result_dtype":"float16"}'
post 200 '"result_text": "27670116110564327423"' '{"a":[9223372036854775807,1],"b":[3,2],"dtype":"int64"}'
post 200 '"result": \[6\.0, 48\.0\]' '{"a":[[1,2],[3,-4]],"b":[[5,6],[7,8]],"dtype":"complex64","conjugate":true}'
post 200 '"result": 2\.0' '{"a":[1],"b":[2],"timeout_ms":10000}'
post 200 '"result": 32\.0' '{"a":[1,2,3],"b":[4,5,6]}' -H 'Transfer-Encoding: chunked'
post 200 '"result": 32\.0' '{"a":[1,2,3],"b":[4,5,6]}' -H 'Expect: 100-continue'

# Operands in base64, of either alphabet
post 200 '"result": 32\.0' '{"a":{"base64":"AACAPwAAAEAAAEBA","dtype":"float32"},"b":[4,5,6]}'
post 200 '"result": \[-2, ?-4\]' '{"a":{"base64":"__79_A","dtype":"int8","shape":[2,2]},"b":[0,1]}'
post 422 '"pointer": "/a/base64"' '{"a":{"base64":"A","dtype":"int8"},"b":[1]}'

# Raw elements, both ways
raw 200 '"result": 70\.0' ab.f32 'dtype=float32'
raw 200 '"result": 70\.0' ab.f64 'dtype=float64'
raw 200 '"result": \[17\.0, ?53\.0\]' ab.f32 'dtype=f32&shape_a=2,2&shape_b=2,2'
raw 200 '"result": 100\.0' ab.f32 'dtype=f32&layout=interleaved;block=1'
raw 200 '"result": \[11, ?30\], .*"n": \[2, ?1\]' pairs.i8 'dtype=int8&layout=pairs'
raw 200 '^Dotd-Device: cpu$' ab.f32 'dtype=f32&device=cpu' -H 'Accept: application/octet-stream'

# NumPy arrays, both ways
npy='Content-Type: application/x-npy'
call 200 '"result": 32, "bits": "0x0000000000000020"' -H "$npy" --data-binary "@$folder/ab.npy" "$dot"
call 200 "NUMPY.*'descr': '<i8'.*'shape': \(\)" -H "$npy" -H 'Accept: application/x-npy' \
    --data-binary "@$folder/ab.npy" "$dot"
call 400 '"offset": 0' -H "$npy" -d '[1,2]' "$dot"

# Forms, of every kind of operand
call 200 '"result": 32\.0' -F 'a=[1,2,3]' -F 'b=[4,5,6]' "$dot"
call 200 '"result": 100\.0, .*"id": "r-18"' -F dtype=float32 -F shape_b=8 -F id=r-18 \
    -F 'a=[1,1,1,1,1,1,1,9]' -F "b=@$folder/ab.f32" "$dot"
call 200 '"result": 14' -F "a=@$folder/a.npy" -F 'b=[1,2,3]' "$dot"
call 400 '"pointer": "/dtype"' -F "a=@$folder/ab.f32" -F "b=@$folder/ab.f32" "$dot"
call 400 'options stand before them' -F 'a=[1]' -F 'b=[2]' -F dtype=float32 "$dot"

# Compressed bodies
call 200 '"result": 32\.0' -H 'Content-Encoding: gzip' --data-binary "@$folder/ab.json.gz" "$dot"
call 200 '"result": 2\.0' -H 'Content-Encoding: deflate' --data-binary "@$folder/ab.json.deflate" "$dot"
raw 200 '"result": 70\.0' ab.f32.gz 'dtype=float32' -H 'Content-Encoding: gzip'
call 400 'not whole as gzip' -H 'Content-Encoding: gzip' -d '{"a":[1],"b":[2]}' "$dot"
call 415 '^Accept-Encoding: gzip, deflate$' -H 'Content-Encoding: br' -d '{"a":[1],"b":[2]}' "$dot"

# A kernel of the ladder, and the lab
ask 200 '"name": "warp-shuffle"' '/v1/kernels?n=1000'
post 200 '"result": 32\.0, .*"kernel": "tree"' '{"a":[1,2,3],"b":[4,5,6],"dtype":"float32","kernel":"tree"}'
ask 200 '"value": 70\.0' /v1/lab/reduce '{"a":[1,2,3,4],"b":[5,6,7,8],"scheme":"stride"}'
ask 200 '"right": 1000' /v1/lab/race '{"n":1000}'
ask 200 '"wrong": \[\]' /v1/lab/shift '{"n":8,"barriers":2}'
ask 200 '"stopped": true' /v1/lab/barrier '{"n":8,"where":"branch"}'
ask 200 '"distinct": [0-9]' /v1/lab/rounding '{"a":[1e8,1,-1e8],"b":[1,1,1],"orders":4}'
ask 200 '"time_us": ' /v1/lab/measure '{"kernel":"tree","n":64}'

# The Open Inference Protocol
kind='"shape":[3],"datatype":"FP32"'
inputs="[{\"name\":\"a\",$kind,\"data\":[1,2,3]},{\"name\":\"b\",$kind,\"data\":[4,5,6]}]"
ask 200 '"binary_tensor_data"' /v2
ask 200 '"live"' /v2/health/live
ask 200 '"ready"' /v2/health/ready
ask 200 '"dot_int8"' /v2/repository/index
ask 200 '"inference_count"' /v2/models/stats
for model in dot dot/versions/1; do
    ask 200 '"platform"' "/v2/models/$model"
    ask 200 '"ready"' "/v2/models/$model/ready"
    ask 200 '"max_batch_size"' "/v2/models/$model/config"
    ask 200 '"inference_stats"' "/v2/models/$model/stats"
    ask 200 '"data": \[32\.0\]' "/v2/models/$model/infer" "{\"inputs\":$inputs}"
done
call 200 '"data": \[70\.0\]' -H "Inference-Header-Content-Length: $head_size" \
    --data-binary "@$folder/inference" "$base/v2/models/dot/infer"
ask 400 '"error": "' /v2/models/dot/infer '{"inputs":[]}'

# A quick look, and the pages
call 200 '"result": 32\.0' "$dot?a=1,2,3&b=4,5,6"
ask 200 'curl' /
call 200 '^X-Request-Id: try-1$' -H 'X-Request-Id: try-1' "$base/livez"
ask 200 '"ready": true' /readyz
ask 200 '"libmicrohttpd"' /v1/status
ask 200 '"cpu"' /v1/devices
ask 200 'max_body_bytes' /v1/limits
ask 200 '^dotd_http_requests_total' /metrics
ask 200 '^openapi: 3' /openapi.yaml
ask 200 '"openapi": "3' /openapi.json
ask 200 '"length-mismatch"' /problems/
ask 200 '422' /problems/length-mismatch
call 200 '^Content-Length: ' --head "$base/livez"

# What is refused, and how
post 422 '/problems/length-mismatch' '{"a":[1,2],"b":[1,2,3]}'
post 422 '"pointer": "/a/1"' '{"a":[1,1e999],"b":[1,2]}'
post 400 '"offset": 10' '{"a":[1,2,],"b":[1,2]}'
post 400 '/problems/bad-option' '{"a":[1],"b":[2],"c":3}'
raw 400 'data-binary' odd 'dtype=float32'
ask 404 '/problems/not-found' /nonesuch
call 405 '^Allow: ' -X DELETE "$dot"
post 406 '/problems/not-acceptable' '{"a":[1],"b":[2]}' -H 'Accept: text/html'
post 415 'application/octet-stream' '1' -H 'Content-Type: text/plain'

printf '\n%d right, %d wrong\n' "$right" "$wrong"
[ "$wrong" -eq 0 ]
