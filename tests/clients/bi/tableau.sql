-- Tableau over psqlODBC: tests the connection, reads metadata, fills shelves and filters.
CREATE LOCAL TEMPORARY TABLE "#Tableau_1_1_Connect" ("COL" INTEGER) ON COMMIT PRESERVE ROWS
;; error 42501
DROP TABLE "#Tableau_1_1_Connect"
;; error
SELECT current_schema()
;; rows 1
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED
;;
SELECT * FROM (SELECT * FROM "public"."orders") "t" LIMIT 0
;; rows 0
SELECT SUM(1) AS "cnt:orders:ok" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)
;; rows 1
SELECT "orders"."state" AS "state", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1
;; rows 3
SELECT "orders"."state" AS "state" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST
;; rows 3
SELECT "orders"."product" AS "product" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST
;; rows 2
SELECT "orders"."state" AS "state", COUNT(DISTINCT "orders"."user_id") AS "ctd:user_id:ok" FROM "public"."orders" "orders" WHERE (CASE WHEN ("orders"."product" = 'pen') THEN FALSE ELSE TRUE END) GROUP BY 1
;; rows 3
SELECT "orders"."state" AS "state", SUM(1) AS "cnt:orders:ok" FROM "public"."orders" "orders" WHERE ((CASE WHEN (NOT ("orders"."state" IS NULL)) THEN TRUE ELSE FALSE END) AND ("orders"."state" IN ('new', 'paid'))) GROUP BY 1
;; some
SELECT CAST(TRUNC(EXTRACT(YEAR FROM "orders"."created_at")) AS INTEGER) AS "yr:created_at:ok", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1
;; some
SELECT DATE_TRUNC('MONTH', CAST("orders"."created_at" AS TIMESTAMP)) AS "tmn:created_at:ok", AVG("orders"."amount") AS "avg:amount:ok" FROM "public"."orders" "orders" GROUP BY 1
;; some
SELECT MIN("orders"."amount") AS "TEMP(TC_)(1)(0)", MAX("orders"."amount") AS "TEMP(TC_)(2)(0)" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)
;; rows 1
SELECT "orders"."state" AS "state", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" INNER JOIN (SELECT "orders"."state" AS "state", SUM("orders"."amount") AS "$__alias__0" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 2 DESC, 1 ASC LIMIT 2) "t0" ON ("orders"."state" = "t0"."state") GROUP BY 1
;; rows 2
SELECT "t0"."state" AS "state", AVG("t0"."__measure__0") AS "avg" FROM (SELECT "orders"."user_id" AS "user_id", "orders"."state" AS "state", SUM("orders"."amount") AS "__measure__0" FROM "public"."orders" "orders" GROUP BY 1, 2) "t0" GROUP BY 1
;; rows 3
SELECT "users"."country" AS "country", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" INNER JOIN "public"."users" "users" ON ("orders"."user_id" = "users"."id") GROUP BY 1
;; rows 3
SELECT "orders"."amount" AS "amount", "orders"."state" AS "state" FROM "public"."orders" "orders" LIMIT 1000
;; error 42501
SELECT "orders"."state" AS "state", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1
;; rows 3
