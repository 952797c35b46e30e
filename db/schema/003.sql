-- Version 3: stock in Redis, whose orders are written here later. product.count is then the stock minus the orders that
-- are written so far. Redis has fewer units: the accepted orders that are not written yet are subtracted too.

-- Identifies the stock in Redis. It grows with every reset, so that units taken from an earlier stock can be recognized.
-- It starts at the current time, so that a new database ignores what Redis still has from an earlier one.
ALTER TABLE product
    ADD COLUMN stock_epoch bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- An order that was accepted and then rejected, for example because Redis had lost its data; it has no item.
ALTER TABLE orders
    DROP CONSTRAINT orders_status_check,
    ADD CONSTRAINT orders_status_check CHECK (status IN ('pending', 'rejected'));

CREATE TABLE order_rejected (
    order_id        bigint PRIMARY KEY REFERENCES orders ON DELETE CASCADE,
    product_id      bigint NOT NULL REFERENCES product,
    quantity        bigint NOT NULL CHECK (quantity > 0),
    strategy        text NOT NULL,
    instance        text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by      text NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_by      text NOT NULL
);

CREATE INDEX order_rejected_by_product ON order_rejected (product_id, order_id);

CREATE OR REPLACE VIEW product_stock AS
SELECT id AS product_id,
       CASE stock_kind
            WHEN 'counter' THEN count
            WHEN 'units' THEN (SELECT count(*) FROM product_unit u WHERE u.product_id = product.id)
            WHEN 'buckets' THEN (SELECT coalesce(sum(b.count), 0)::bigint
                                 FROM product_bucket b WHERE b.product_id = product.id)
            WHEN 'redis' THEN count
       END AS units_left
FROM product;

-- The product and quantity of every order, rejected ones included.
CREATE VIEW order_line AS
SELECT order_id, product_id, purchase_num AS quantity, strategy, stock_seen FROM order_item
UNION ALL
SELECT order_id, product_id, quantity, strategy, NULL FROM order_rejected;
