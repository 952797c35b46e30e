// The HTTP server around an exercise: POST /orders calls order(product, quantity) of the file that ORDER names, and answers 201 if it
// resolves to true, 409 if it resolves to false.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const vm = require("node:vm");

const { ORDER, PORT } = process.env;

// The file may be anywhere. Its require looks for servers.js in this folder.
function load(file) {
  const module = { exports: {} };
  vm.compileFunction(fs.readFileSync(file, "utf8"), ["module", "exports", "require"], { filename: file })(module, module.exports, require);
  if (typeof module.exports.order !== "function") throw new Error("module.exports has no function named order");
  return module.exports.order;
}

function loadOrExit(file) {
  try {
    return load(file);
  } catch (error) {
    console.error(error);
    console.error(`shop: node cannot load ${file}. Correct the error above, then run the judge again.`);
    return process.exit(1);
  }
}

const order = loadOrExit(ORDER);

const server = http.createServer(async (request, response) => {
  let status = 200;
  try {
    let text = "";
    for await (const part of request.setEncoding("utf8")) text += part;
    if (request.method === "POST") {
      const { product_id: product, quantity } = JSON.parse(text);
      status = (await order(product, quantity)) ? 201 : 409;
    }
  } catch (error) { // any error of an exercise
    console.error("shop:", error);
    status = 503;
  }
  response.writeHead(status).end("{}");
});

server.listen({ port: Number(PORT), host: "127.0.0.1", backlog: 1024 });
