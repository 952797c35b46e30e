-- Version 2: stock that is not one counter. product.stock_kind says where a product's stock is kept. product.count is
-- the stock of the kind `counter`, and 0 for other kinds.

-- `units`: one row for each unit for sale. A sale deletes the row, and so leaves one dead row and one dead index entry;
-- marking the row as sold would leave a new version as well. An order looks for the lowest number, and skips the dead
-- entries before it. The first order that meets a dead entry marks it for the others. That costs little for up to the
-- 100,000 units that a product may have, unless an old transaction prevents the marking.
-- No REFERENCES product: it made a reset ten times slower, and products are never deleted.
CREATE TABLE product_unit (
    product_id      bigint NOT NULL,
    no              bigint NOT NULL,
    PRIMARY KEY (product_id, no)
);

-- `buckets`: the stock split over rows, so that two orders wait for each other only if they chose the same row.
CREATE TABLE product_bucket (
    product_id      bigint NOT NULL REFERENCES product,
    no              int NOT NULL,
    count           bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (product_id, no)
) WITH (fillfactor = 10);   -- a page holds a product's buckets, and room for their new versions (HOT updates)

-- The units that are left of each product of any kind; null if the stock is not kept in this database.
CREATE VIEW product_stock AS
SELECT id AS product_id,
       CASE stock_kind
            WHEN 'counter' THEN count
            WHEN 'units' THEN (SELECT count(*) FROM product_unit u WHERE u.product_id = product.id)
            WHEN 'buckets' THEN (SELECT coalesce(sum(b.count), 0)::bigint
                                 FROM product_bucket b WHERE b.product_id = product.id)
       END AS units_left
FROM product;
