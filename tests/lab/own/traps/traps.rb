# What methods of ActiveRecord do to the column of optimistic locking: a line with the method and the column's value after it.
require "active_record"

ActiveRecord::Base.establish_connection(ENV.fetch("DATABASE_URL"))
ActiveRecord::Base.connection.execute("CREATE TEMP TABLE items (id int PRIMARY KEY, count int, lock_version int DEFAULT 0)")
class Item < ActiveRecord::Base; end
Item.create!(id: 1, count: 10)
show = ->(method) { puts "#{method} #{Item.find(1).lock_version}" }

Item.where(id: 1).update_all(count: 9)
show.("update_all-hash")
Item.where(id: 1).update_all("count = count - 1")
show.("update_all-string")
Item.where(id: 1).update_all(["count = count - ?", 1])
show.("update_all-array")
stale = Item.find(1)
Item.where(id: 1).update_all("lock_version = 5")
stale.decrement!(:count, 1) # compares nothing, or it would raise StaleObjectError
show.("decrement!-of-a-stale-record")
