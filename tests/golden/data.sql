-- What the golden cases run on, in both backends: few rows, some of them outside of what the policies declare.
CREATE TABLE people (uid BIGINT PRIMARY KEY, age INTEGER, salary NUMERIC(12,2), score DOUBLE PRECISION, city TEXT,
  joined DATE, active BOOLEAN, note TEXT);
INSERT INTO people VALUES
  (1, 30, 50000.50, 12.5, 'Rome', '2001-05-17', TRUE, 'a'), (2, 45, 61000.00, 99.9, 'Oslo', '2002-01-01', FALSE, 'b'),
  (3, NULL, NULL, 'NaN', NULL, NULL, NULL, NULL), (4, 200, 999999.99, 'Infinity', 'Paris', '1999-12-31', TRUE, ''),
  (5, -3, -1.00, '-Infinity', 'rome', 'infinity', TRUE, 'a'), (6, 61, 72000.10, 0.1, 'Lima', '2003-12-31', FALSE, 'c');
CREATE TABLE visits (uid INTEGER, shop TEXT, amount DOUBLE PRECISION, items SMALLINT, seen TIMESTAMP, day DATE);
INSERT INTO visits VALUES
  (1, 'books', 12.5, 1, '2020-01-03 10:00:00', '2020-01-03'), (1, 'books', 7.25, 2, '2020-01-04 11:30:00', '2020-01-04'),
  (1, 'cafe', 3, 1, '2020-02-03 09:00:00', '2020-02-03'), (1, 'cafe', 3, 1, '2020-02-04 09:00:00', '2020-02-04'),
  (1, 'cafe', 3, 1, '2020-02-05 09:00:00', '2020-02-05'), (1, 'cafe', 3, 1, '2020-02-06 09:00:00', '2020-02-06'),
  (2, 'zoo', 1e308, 5, '2020-03-01 00:00:00', '2020-03-01'), (2, 'zoo', 'NaN', NULL, NULL, NULL),
  (2, 'books', -50, -5, '2020-03-31 23:59:59', '2020-03-31'), (3, 'closed', 40, 3, '1990-01-01 00:00:00', '1990-01-01'),
  (4, NULL, 500, 3, '2020-01-31 12:00:00', '2020-01-31'), (5, 'cafe', NULL, 4, '2020-02-29 12:00:00', '2020-02-29'),
  (6, 'zoo', 19.99, 2, '2020-01-10 18:45:00', '2020-01-10'), (NULL, 'zoo', 20, 2, '2020-01-10 18:45:00', '2020-01-10');
CREATE TABLE orders (o_id BIGINT PRIMARY KEY, o_uid BIGINT, o_date DATE, o_total NUMERIC(15,2), o_status TEXT);
INSERT INTO orders VALUES (10, 1, '2019-03-01', 100.00, 'paid'), (11, 1, '2019-04-01', 20.50, 'open'),
  (12, 2, '2019-04-02', 1e6, 'paid'), (13, NULL, '2019-05-05', 5, 'paid'), (14, 6, NULL, NULL, NULL);
CREATE TABLE items (i_order BIGINT, i_shop TEXT, i_qty INTEGER, i_price NUMERIC(10,2), i_disc DOUBLE PRECISION);
INSERT INTO items VALUES (10, 'books', 2, 40.00, 0.1), (10, 'zoo', 1, 20.00, 0), (11, 'books', 1, 20.50, 0.05),
  (12, 'cafe', 99, 10101.01, 0.5), (13, 'cafe', 1, 5, 0), (NULL, 'zoo', 1, 1, 0), (99, 'zoo', 1, 1, 0), (14, NULL, NULL, NULL, NULL);
CREATE TABLE shops (shop TEXT PRIMARY KEY, region TEXT NOT NULL, rent INTEGER);
INSERT INTO shops VALUES ('books', 'north', 100), ('cafe', 'south', 80), ('zoo', 'north', NULL);
CREATE TABLE tags (shop TEXT, tag TEXT);
INSERT INTO tags VALUES ('books', 'quiet'), ('books', 'indoor'), ('cafe', 'indoor'), ('zoo', 'outdoor');
CREATE TABLE baskets (uid BIGINT, store INTEGER, no INTEGER, amt INTEGER, PRIMARY KEY (store, no));
INSERT INTO baskets VALUES (1, 1, 0, 2), (1, 2, 2, 2), (2, 1, 2, 1), (6, 7, 7, NULL), (NULL, 8, 0, 1);
CREATE TABLE lines (l_store INTEGER, l_no INTEGER, l_ln INTEGER, l_qty INTEGER, PRIMARY KEY (l_store, l_no, l_ln));
INSERT INTO lines VALUES (1, 2, 1, 5), (1, 2, 2, 1), (7, 7, 1, 50), (8, 0, 1, 1), (9, 9, 1, 1);
CREATE TABLE pays (p_store INTEGER, p_no INTEGER, p_sum INTEGER);
INSERT INTO pays VALUES (1, 2, 5), (7, 7, 1), (7, 7, 2), (NULL, 7, 3);
CREATE TABLE "Hits" ("UserID" BIGINT, "CounterID" INTEGER, "Title" TEXT);
INSERT INTO "Hits" VALUES (1, 1, 'home'), (1, 2, 'news'), (2, 1, NULL), (3, 9, 'home'), (NULL, 1, 'home');
CREATE TABLE "Counters" ("CounterID" INTEGER PRIMARY KEY, "Site" TEXT);
INSERT INTO "Counters" VALUES (1, 'main'), (2, 'shop'), (3, 'shop');
DROP SCHEMA IF EXISTS sales CASCADE;
CREATE SCHEMA sales;
CREATE TABLE sales.orders (customer BIGINT, "Total" INTEGER);
INSERT INTO sales.orders VALUES (1, 5), (1, 50), (2, 10), (NULL, 1);
CREATE TABLE sales.refunds ("UserID" BIGINT, amount INTEGER);
INSERT INTO sales.refunds VALUES (1, 5), (2, 5), (2, 7);
DROP SCHEMA IF EXISTS archive CASCADE;
CREATE SCHEMA archive;
CREATE TABLE archive.orders (customer BIGINT, "TOTAL" INTEGER);
INSERT INTO archive.orders VALUES (2, 100), (4, 3), (4, 8);
