# What sqlite3 does: the same on Linux and on the kernel.
sqlite3 file.db 'create table t (id integer primary key, name text, value real);'
for i in $(seq 200); do echo "insert into t (name, value) values ('row $i', $i * 1.5);"; done | sqlite3 file.db
(echo 'begin;'; for i in $(seq 201 1200); do echo "insert into t (name, value) values ('row $i', $i * 1.5);"; done; echo 'commit;') | sqlite3 file.db
sqlite3 file.db 'select count(*), sum(id), avg(value), max(name) from t; pragma integrity_check; pragma journal_mode;'
sqlite3 file.db 'create index by_name on t (name); explain query plan select * from t where name = "row 77";'
sqlite3 -header -column file.db 'select id, name from t where id between 10 and 13;'
sqlite3 -csv file.db "select id % 7 as k, count(*), group_concat(id % 3, '') from t where id < 50 group by k order by k desc;"
sqlite3 -json file.db 'select id, value from t limit 2;'
sqlite3 file.db 'begin; delete from t where id > 10; rollback; select count(*) from t; update t set value = -value where id % 2; select total(value) from t;'
sqlite3 file.db 'with recursive f(a, b) as (values(0, 1) union all select b, a + b from f where b < 1000) select group_concat(a) from f;'
sqlite3 file.db "select json_extract('{\"a\": [1, 2, 3]}', '\$.a[1]'), upper(hex('abc')), strftime('%Y', 1e9, 'unixepoch'), printf('%05.1f', 3.14159), round(2.5), typeof(1.0);"
sqlite3 file.db 'pragma journal_mode = wal; insert into t (name) values ("in the log"); select count(*) from t; pragma wal_checkpoint; pragma journal_mode = delete;'
ls; sqlite3 file.db .schema; sqlite3 file.db 'vacuum; select page_count > 0 from pragma_page_count; drop table nothing;'; echo $?
sqlite3 file.db .dump | sqlite3 copy.db; sqlite3 copy.db 'select count(*), total(value) from t'; sqlite3 file.db '.backup other.db'; cmp file.db other.db && echo the same
sqlite3 file.db 'create virtual table docs using fts5(body); insert into docs values ("the quick brown fox"), ("lazy dogs"); select body from docs where docs match "quick";'
# Two programs at a time: one holds the lock, the other is told.
mkfifo hold; (sqlite3 file.db <hold >/dev/null) & exec 3>hold; echo 'begin exclusive;' >&3; sleep 0.3
sqlite3 -cmd '.timeout 50' file.db 'insert into t (name) values ("not now");'; echo "status $?"
echo 'commit;' >&3; exec 3>&-; wait; sqlite3 file.db 'insert into t (name) values ("now"); select name from t order by id desc limit 1;'
