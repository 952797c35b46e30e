// Exercise 1: the program checks the stock, then the database subtracts. Change the order so that the UPDATE does both.

class Order {
    static boolean order(long product, int quantity) throws Exception {
        return Servers.transaction(sql -> {
            long count = sql.row("SELECT count FROM product WHERE id = ?", product)[0];
            if (count < quantity) return false;
            sql.execute("UPDATE product SET count = count - ? WHERE id = ?", quantity, product);
            sql.execute("INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity);
            return true;
        });
    }
}
