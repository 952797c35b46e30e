BEGIN;
SELECT count, price FROM product WHERE id = 1 FOR UPDATE \gset
UPDATE product SET count = :count - 1, version = version + 1, updated_by = 'pgbench' WHERE id = 1;
WITH o AS (
  INSERT INTO orders (amount, created_by, updated_by) VALUES (:price::numeric * 1, 'pgbench', 'pgbench') RETURNING id
) INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid, created_by, updated_by)
  SELECT id, 1, :price::numeric, 1, 'pgbench', 'pgbench', pg_current_xact_id(), 'pgbench', 'pgbench' FROM o RETURNING order_id;
COMMIT;
