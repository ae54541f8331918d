-- What programs outside of evictrail were notified of (../schema/deliveries.sql).
CREATE TABLE evictrail.receivers (
    cluster     text        NOT NULL,
    receiver    text        NOT NULL,
    since       timestamptz NOT NULL,
    notified_to timestamptz NOT NULL,
    PRIMARY KEY (cluster, receiver)
);
CREATE TABLE evictrail.deliveries (
    cluster   text        NOT NULL,
    receiver  text        NOT NULL,
    notice_id uuid        NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (cluster, receiver, notice_id)
);
