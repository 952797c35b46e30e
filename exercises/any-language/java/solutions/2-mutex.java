// The mutex is around the transaction, so it is released after the COMMIT, and on every path.

class Order {
    private static final Object mutex = new Object();

    static boolean order(long product, int quantity) throws Exception {
        synchronized (mutex) {
            return Servers.transaction(sql -> {
                long count = sql.row("SELECT count FROM product WHERE id = ?", product)[0];
                if (count < quantity) return false;
                sql.execute("UPDATE product SET count = ? WHERE id = ?", count - quantity, product);
                sql.execute("INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity);
                return true;
            });
        }
    }
}
