pragma journal_mode = wal;
create table t (a integer primary key, b text);
with recursive n (i) as (select 1 union all select i + 1 from n where i < 1500)
insert into t select i, 'row ' || (i * 7 % 1000) || ' ' || (i * i) from n;
create index i on t (b);
select count(*), sum(length(b)) from t;
begin immediate;
delete from t where a % 3 = 0;
-- other
select count(*) from t;
delete from t;
-- first
commit;
-- other
select count(*), min(b), max(b) from t;
insert into t values (5, 'twice');
-- first
pragma wal_checkpoint(truncate);
vacuum;
create virtual table words using fts5 (body);
insert into words select b from t;
select count(*) from words where words match 'row';
select json_group_array(a) from (select a from t order by b limit 5);
pragma integrity_check;
