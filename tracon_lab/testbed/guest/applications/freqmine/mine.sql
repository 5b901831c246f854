-- Frequent sets of one, two and three items, each found by joining the frequent
-- sets one smaller with the frequent items of the same basket.
PRAGMA synchronous = OFF;
CREATE TABLE one AS
SELECT item, count(*) AS support FROM basket GROUP BY item HAVING support >= 40;
CREATE TABLE kept AS
SELECT CAST(number AS INTEGER) AS number, CAST(item AS INTEGER) AS item
FROM basket WHERE item IN (SELECT item FROM one);
CREATE INDEX kept_number ON kept (number, item);
CREATE TABLE two AS
SELECT a.item AS first, b.item AS second, count(*) AS support
FROM kept a JOIN kept b ON b.number = a.number AND b.item > a.item
GROUP BY first, second HAVING support >= 40;
CREATE INDEX two_first ON two (first, second);
CREATE TABLE three AS
SELECT a.item AS first, b.item AS second, c.item AS third, count(*) AS support
FROM kept a
JOIN kept b ON b.number = a.number AND b.item > a.item
JOIN two ON two.first = a.item AND two.second = b.item
JOIN kept c ON c.number = a.number AND c.item > b.item
GROUP BY a.item, b.item, c.item HAVING support >= 40;
