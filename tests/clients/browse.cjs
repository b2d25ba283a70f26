// What pg, pg-cursor, postgres and knex do; prints one JSON line with what each of them found.
const fs = require("fs");
const [url, ca, wanted] = process.argv.slice(2);
const load = (name) => require(require.resolve(name, { paths: [process.env.NODE_CLIENTS] }));
const tls = { ca: fs.readFileSync(ca, "utf8"), rejectUnauthorized: true };
const BY_STATE = "SELECT state, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY state";
const SLOW = "SELECT COUNT(*) FROM pg_attribute a, pg_attribute b, pg_attribute c";

async function refused(promise) {
  try {
    await promise;
    return "answered";
  } catch (error) {
    return error.code;
  }
}

const clients = {
  async pg() {
    const { Client, Pool } = load("pg");
    const client = new Client({ connectionString: url, ssl: tls, statement_timeout: 20000 });
    await client.connect();
    const states = (await client.query(BY_STATE)).rows.map((row) => row.state);
    const answers = new Set();
    for (let i = 0; i < 8; i++) {
      const named = { name: "asked", text: "SELECT COUNT(*) AS n FROM orders WHERE state = $1 AND qty > $2", values: ["new", 1] };
      answers.add((await client.query(named)).rows[0].n);
    }
    const listed = (await client.query("SELECT COUNT(*) AS n FROM orders WHERE state = ANY($1)", [["new", "paid"]])).rows.length;
    const code = await refused(client.query("SELECT * FROM orders"));
    const both = (await client.query("SELECT 1 AS a; SELECT 2 AS b")).length;
    await client.query("SET statement_timeout = 300");
    const late = await refused(client.query(SLOW));
    await client.end();
    const pool = new Pool({ connectionString: url, ssl: tls, max: 3 });
    const pooled = await Promise.all([1, 2, 3, 4, 5].map(() => pool.query("SELECT COUNT(*) FROM countries")));
    await pool.end();
    return { states, same: answers.size, listed, code, both, late, pooled: pooled.length };
  },
  async "pg-cursor"() {
    const { Client } = load("pg");
    const Cursor = load("pg-cursor");
    const client = new Client({ connectionString: url, ssl: tls });
    await client.connect();
    const cursor = client.query(new Cursor(BY_STATE, []));
    const sizes = [(await cursor.read(2)).length, (await cursor.read(2)).length, (await cursor.read(2)).length];
    await cursor.close();
    await client.end();
    return { sizes };
  },
  async postgres() {
    const sql = load("postgres")(url, { ssl: tls, max: 1, onnotice: () => {} });
    const states = (await sql.unsafe(BY_STATE)).map((row) => row.state);
    const answers = new Set();
    for (let i = 0; i < 8; i++) answers.add((await sql`SELECT COUNT(*) AS n FROM orders WHERE user_id > ${7} AND state = ${"new"}`)[0].n);
    const listed = (await sql`SELECT COUNT(*) AS n FROM orders WHERE state IN ${sql(["new", "paid"])}`).length;
    const sizes = [];
    await sql.unsafe(BY_STATE).cursor(2, (rows) => { sizes.push(rows.length); });
    const code = await refused(sql`SELECT * FROM orders`);
    const inside = await sql.begin(async (transaction) => (await transaction`SELECT 1 AS one`)[0].one);
    await sql.end();
    return { states, same: answers.size, listed, sizes, code, inside };
  },
  async knex() {
    const knex = load("knex")({ client: "pg", version: "15.14", connection: { connectionString: url, ssl: tls } });
    const answers = new Set();
    for (let i = 0; i < 8; i++) {
      const rows = await knex("orders").select("state").count("* as n").where("qty", ">", 1).groupBy("state");
      answers.add(JSON.stringify(rows));
    }
    const has = await knex.schema.hasTable("orders");
    const columns = Object.keys(await knex("orders").columnInfo());
    const code = await refused(knex("orders").select("*"));
    await knex.destroy();
    return { same: answers.size, has, columns, code };
  },
};

clients[wanted]().then((found) => console.log(JSON.stringify(found)), (error) => { console.error(error); process.exit(1); });
