CREATE TABLE product (id int PRIMARY KEY, count int NOT NULL);
CREATE TABLE sale (id bigserial PRIMARY KEY);
INSERT INTO product VALUES (1, 0);
CREATE TABLE reservation (id bigserial PRIMARY KEY, product int NOT NULL, quantity int NOT NULL);
CREATE TABLE lock (name text PRIMARY KEY, until timestamptz NOT NULL, owner text NOT NULL);
