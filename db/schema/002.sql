-- Version 2: stock that is not one counter. product.stock_kind says where a product's stock lies; product.count is
-- that of the kind `counter`, and 0 under the others.

-- `units`: one row a unit for sale; a sold one is deleted. So a sale leaves one dead row and one dead entry of one
-- index behind, where marking the row as sold would leave a new version of it as well. Takers look for the lowest
-- number and step over the dead entries before it, which the first that meets them marks for the others. That costs
-- little up to the 100,000 units that a product may have, unless an old transaction keeps the dead from being marked.
-- No REFERENCES product: it made a reset ten times slower, and products are never deleted.
CREATE TABLE product_unit (
    product_id      bigint NOT NULL,
    no              bigint NOT NULL,
    PRIMARY KEY (product_id, no)
);

-- `buckets`: the stock split over rows, so that orders wait for each other only where they have chosen the same.
CREATE TABLE product_bucket (
    product_id      bigint NOT NULL REFERENCES product,
    no              int NOT NULL,
    count           bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (product_id, no)
) WITH (fillfactor = 10);   -- a page holds a product's buckets, and else room for their new versions (HOT updates)

-- What is left of each product, whatever its kind; null where the stock is not kept in this database.
CREATE VIEW product_stock AS
SELECT id AS product_id,
       CASE stock_kind
            WHEN 'counter' THEN count
            WHEN 'units' THEN (SELECT count(*) FROM product_unit u WHERE u.product_id = product.id)
            WHEN 'buckets' THEN (SELECT coalesce(sum(b.count), 0)::bigint
                                 FROM product_bucket b WHERE b.product_id = product.id)
       END AS units_left
FROM product;
