-- Power BI over psqlODBC and Npgsql: the navigator, the preview, visuals by DirectQuery.
select character_set_name from INFORMATION_SCHEMA.character_sets
;; rows 1
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog', 'dpsql') order by TABLE_SCHEMA, TABLE_NAME
;; rows 4
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'orders' order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
;; rows 8
select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcol.TABLE_SCHEMA AS FK_TABLE_SCHEMA, fkcol.TABLE_NAME AS FK_TABLE_NAME, fkcol.COLUMN_NAME as FK_COLUMN_NAME, fkcol.ORDINAL_POSITION as ORDINAL, fkcon.CONSTRAINT_SCHEMA || '_' || fkcol.TABLE_NAME || '_' || 'countries' || '_' || fkcon.CONSTRAINT_NAME as FK_NAME from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema, constraint_name, unique_constraint_name from INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS) fkcon inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE fkcol on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA and fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME inner join INFORMATION_SCHEMA.KEY_COLUMN_USAGE pkcol on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA and fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME where pkcol.TABLE_SCHEMA = 'public' and pkcol.TABLE_NAME = 'countries' and pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION order by FK_NAME, fkcol.ORDINAL_POSITION
;; rows 1
select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME, ii.ORDINAL_POSITION, case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY from INFORMATION_SCHEMA.table_constraints i inner join INFORMATION_SCHEMA.key_column_usage ii on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME and i.TABLE_SCHEMA = ii.TABLE_SCHEMA and i.TABLE_NAME = ii.TABLE_NAME where i.TABLE_SCHEMA = 'public' and i.TABLE_NAME = 'users' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE') order by i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME, ii.TABLE_SCHEMA, ii.TABLE_NAME, ii.ORDINAL_POSITION
;; rows 1
select "$Table"."user_id" as "user_id", "$Table"."state" as "state", "$Table"."amount" as "amount" from "public"."orders" "$Table" limit 1000
;; error 42501
select count(*) as "C1" from "public"."orders" "$Table"
;; rows 1
select "_"."state", "_"."a0" from (select "rows"."state" as "state", sum("rows"."amount") as "a0" from (select "_"."state", "_"."amount" from "public"."orders" "_" where "_"."qty" > 1) "rows" group by "state") "_" where not "_"."a0" is null limit 1000001
;; rows 3
select "_"."t0_0" as "c10", "_"."a0" as "a0" from (select "rows"."state" as "t0_0", count(distinct "rows"."product") + max(case when "rows"."product" is null then 1 else 0 end) as "a0" from (select "state", "product" from "public"."orders" "$Table") "rows" group by "state") "_" where not ("_"."a0") is null limit 1000001
;; rows 3
select count(distinct("rows"."user_id")) + max(case when "rows"."user_id" is null then 1 else 0 end) as "a0" from (select "user_id" from "public"."orders" "$Table") "rows"
;; rows 1
select "basetable0"."a0" as "a0", "basetable0"."c1" as "c1" from (select count("semijoin1"."a0") as "a0", "semijoin1"."c1" as "c1" from (select "$Inner"."name" as "c1", "$Outer"."age" as "a0" from (select "country", "age" from "public"."users") "$Outer" left outer join "public"."countries" "$Inner" on ("$Outer"."country" = "$Inner"."code")) "semijoin1" group by "semijoin1"."c1") "basetable0" where not "basetable0"."a0" is null limit 1000001
;; rows 4
select "_"."state" from (select "state" from "public"."orders" "$Table" group by "state") "_" order by "_"."state" limit 101
;; rows 3
select "_"."c1", "_"."a0" from (select date_trunc('month', "rows"."created_at") as "c1", avg("rows"."amount") as "a0" from "public"."orders" "rows" where "rows"."created_at" >= timestamp '2024-01-01 00:00:00' and "rows"."created_at" < timestamp '2024-07-01 00:00:00' group by date_trunc('month', "rows"."created_at")) "_" where not "_"."a0" is null limit 1000001
;; rows 6
