WITH taken AS (
  UPDATE product SET count = count - 1, version = version + 1, updated_by = 'pgbench'
  WHERE id = 1 AND count >= 1 RETURNING id, price
), o AS (
  INSERT INTO orders (amount, created_by, updated_by) SELECT price * 1, 'pgbench', 'pgbench' FROM taken RETURNING id
) INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid, created_by, updated_by)
  SELECT o.id, taken.id, price, 1, 'pgbench', 'pgbench', pg_current_xact_id(), 'pgbench', 'pgbench' FROM o, taken RETURNING order_id;
