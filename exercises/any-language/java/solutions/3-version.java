// Each write changes the version, and an order that finds another version reads again in a new transaction.

class Order {
    private enum Result { SOLD, SOLD_OUT, CONFLICT }

    private static final String UPDATE = "UPDATE product SET count = ?, version = version + 1 WHERE id = ? AND version = ?";

    private static Result attempt(long product, int quantity) throws Exception {
        return Servers.transaction(sql -> {
            long[] row = sql.row("SELECT count, version FROM product WHERE id = ?", product);
            long count = row[0], version = row[1];
            if (count < quantity) return Result.SOLD_OUT;
            int rows = sql.execute(UPDATE, count - quantity, product, version);
            if (rows == 0) return Result.CONFLICT;
            sql.execute("INSERT INTO order_item (product_id, quantity) VALUES (?, ?)", product, quantity);
            return Result.SOLD;
        });
    }

    static boolean order(long product, int quantity) throws Exception {
        for (int i = 0; i < 100; i++) {
            Result result = attempt(product, quantity);
            if (result != Result.CONFLICT) return result == Result.SOLD;
        }
        throw new IllegalStateException("100 other orders came first");
    }
}
