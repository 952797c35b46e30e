// The UPDATE checks the newest version of the row, and the number of rows is the answer.

class Order {
    static boolean order(long product, int quantity) throws Exception {
        return Servers.transaction(sql -> {
            int rows = sql.execute("UPDATE product SET count = count - ? WHERE id = ? AND count >= ?", quantity, product, quantity);
            if (rows == 0) return false;
            sql.execute("INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity);
            return true;
        });
    }
}
