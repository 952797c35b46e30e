// Exercise 3: write only if the row has not changed since the read. This order() has two bugs: it sells an order
// that should fail, and it refuses an order that it could sell.

class Order {
    static boolean order(long product, int quantity) throws Exception {
        return Servers.transaction(sql -> {
            long[] row = sql.row("SELECT count, version FROM product WHERE id = ?", product);
            long count = row[0], version = row[1];
            if (count < quantity) return false;
            int rows = sql.execute("UPDATE product SET count = ? WHERE id = ? AND version = ?", count - quantity, product, version);
            if (rows == 0) return false;
            sql.execute("INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity);
            return true;
        });
    }
}
