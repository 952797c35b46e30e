-- The statement of statement.sql in a loop inside PostgreSQL, for some seconds: no client, no network, one commit after another. Prints
-- the number of orders.
CREATE PROCEDURE pg_temp.sell(seconds int, INOUT sold int = 0) LANGUAGE plpgsql AS $$
DECLARE
  ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
BEGIN
  WHILE clock_timestamp() < ends LOOP
    WITH taken AS (
      UPDATE product SET count = count - 1, version = version + 1, updated_by = 'loop'
      WHERE id = 1 AND count >= 1 RETURNING id, price
    ), o AS (
      INSERT INTO orders (amount, created_by, updated_by) SELECT price * 1, 'loop', 'loop' FROM taken RETURNING id
    ) INSERT INTO order_item (order_id, product_id, purchase_price, purchase_num, strategy, instance, stock_xid, created_by, updated_by)
      SELECT o.id, taken.id, price, 1, 'loop', 'loop', pg_current_xact_id(), 'loop', 'loop' FROM o, taken;
    COMMIT;
    sold := sold + 1;
  END LOOP;
END $$;
CALL pg_temp.sell(:seconds);
