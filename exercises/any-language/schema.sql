-- The tables of the exercises.
CREATE TABLE product (id integer PRIMARY KEY, count integer NOT NULL, version integer NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0);
CREATE TABLE order_item (id bigserial PRIMARY KEY, product_id integer NOT NULL REFERENCES product, quantity integer NOT NULL);
INSERT INTO product (id, count) VALUES (1, 0);
