-- The tables of the sample services.
CREATE TABLE product (
    id bigint PRIMARY KEY,
    count bigint NOT NULL -- units left
);
CREATE TABLE order_item (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id bigint NOT NULL REFERENCES product,
    quantity bigint NOT NULL
);
INSERT INTO product VALUES (1, 0);
