-- The user of Grafana. "evictrail schema roles" grants evictrail_reader its rights once the views are there.
CREATE ROLE evictrail_reader NOLOGIN;
CREATE ROLE grafana LOGIN PASSWORD 'grafana' IN ROLE evictrail_reader;
ALTER ROLE grafana SET statement_timeout = '5s';
ALTER ROLE grafana SET default_transaction_read_only = on;
ALTER ROLE grafana SET jit = off;
