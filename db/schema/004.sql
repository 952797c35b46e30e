-- Version 4: the orders of a product are found by the product alone. An index of two columns can be read from one end to the
-- other for the second as well, and PostgreSQL did so for each order that a reset deletes, where it took the table for empty.
DROP INDEX order_item_by_product;
CREATE INDEX order_item_by_product ON order_item (product_id);
DROP INDEX order_rejected_by_product;
CREATE INDEX order_rejected_by_product ON order_rejected (product_id);
