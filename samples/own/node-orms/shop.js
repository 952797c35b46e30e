// A small checkout in Node with the query builder or ORM that ORM names. It takes the stock by the idiom that PROTECTION names, so that
// `loadtest explore samples/own/node-orms/shop.json` can show which idioms oversell. docs/frameworks/node.md explains them.
//
// POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units.
"use strict";

const http = require("node:http");

const ORMS = ["knex", "sequelize", "typeorm", "prisma"];
const { ORM = "knex", PROTECTION = "naive", PORT, DATABASE_URL } = process.env;

async function order(request, response, idiom) {
  let text = "";
  for await (const part of request) text += part;
  const { product_id: id, quantity } = JSON.parse(text);
  response.writeHead((await idiom(id, quantity)) ? 201 : 409, { "Content-Type": "application/json" }).end("{}");
}

async function main() {
  if (!ORMS.includes(ORM)) throw new Error(`ORM is "${ORM}". Set it to one of: ${ORMS.join(", ")}.`);
  const idioms = await require(`./${ORM}.js`)(DATABASE_URL);
  const idiom = idioms[PROTECTION];
  if (!idiom) throw new Error(`PROTECTION is "${PROTECTION}". Set it to one of: ${Object.keys(idioms).join(", ")}.`);
  http.createServer((request, response) => {
    if (request.url === "/healthz") return response.end("{}");
    order(request, response, idiom).catch((error) => {
      console.error(`shop: ${error.message}`);
      response.writeHead(503).end("{}");
    });
  }).listen(Number(PORT), "127.0.0.1");
}

main().catch((error) => {
  console.error(`shop: ${error.message}`);
  process.exit(1);
});
