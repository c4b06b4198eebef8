create table customer (id integer primary key, name text, city integer);
create table purchase (id integer primary key, customer integer, item text, price integer);
with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000)
insert into customer select i, 'name ' || (i * 7919 % 2003), i * 31 % 97 from n;
with recursive n (i) as (select 1 union all select i + 1 from n where i < 7000)
insert into purchase select i, i * 6151 % 2003, 'item ' || (i * i % 311), i * 17 % 1009 from n;
create index by_customer on purchase (customer);
create index by_item on purchase (item, price);
select count(*), sum(price) from purchase where item between 'item 100' and 'item 200';
select city, sum(price) from customer join purchase on customer = customer.id
    group by city order by 2 desc limit 5;
select name from customer where name like '%99%' order by name limit 5;
update purchase set price = price + 1 where customer % 5 = 0;
select max(total) from (select sum(price) total from purchase group by item);
