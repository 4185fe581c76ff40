// node_server.js - dot products by node's http: a process a core, by its cluster module.
// Usage: node_server.js PORT PROCESSES.
"use strict";

const cluster = require("node:cluster");
const http = require("node:http");

function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

function dotJson(body) {
    const { a, b } = JSON.parse(body.toString("latin1")); // ASCII: no need to decode
    return dot(a, b);
}

function dotBinary(body) {
    const count = body.length / 8;
    const a = new Float32Array(body.buffer, body.byteOffset, count);
    const b = new Float32Array(body.buffer, body.byteOffset + 4 * count, count);
    return dot(a, b);
}

// The body's length is known, so its pieces go straight to where a Float32Array may begin.
function readBody(request, done) {
    const body = Buffer.allocUnsafeSlow(Number(request.headers["content-length"]));
    let size = 0;
    request.on("data", (piece) => {
        size += piece.copy(body, size);
    });
    request.on("end", () => done(body));
}

function serve() {
    const server = http.createServer((request, response) => {
        readBody(request, (body) => {
            const result = request.url === "/json" ? dotJson(body) : dotBinary(body);
            response.setHeader("Content-Type", "application/json");
            response.end(JSON.stringify({ result }));
        });
    });
    server.listen(Number(process.argv[2]), "127.0.0.1");
}

if (cluster.isPrimary) {
    for (let i = 0; i < Number(process.argv[3]); i++) {
        cluster.fork();
    }
} else {
    serve();
}
