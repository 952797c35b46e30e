-- The tables of the sample services.
CREATE TABLE product (
    id integer PRIMARY KEY, count integer NOT NULL, version integer NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0
);
CREATE TABLE order_item (id bigserial PRIMARY KEY, product_id integer NOT NULL REFERENCES product, quantity integer NOT NULL);
INSERT INTO product VALUES (1, 0);
