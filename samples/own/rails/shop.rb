#!/usr/bin/ruby
# A small checkout with the ActiveRecord of Rails, in one file. It takes the stock by the idiom that PROTECTION names, so that
# `loadtest explore samples/own/rails/shop.json` can show which idioms oversell. docs/frameworks/rails.md explains them.
#
# POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units.

require "json"
require "webrick"
require "active_record"

ActiveRecord::Base.establish_connection(ENV.fetch("DATABASE_URL") + "?pool=20")

class Product < ActiveRecord::Base
  self.table_name = "product"
end

# The same table with optimistic locking. Without the next line, the column is lock_version.
class VersionedProduct < ActiveRecord::Base
  self.table_name = "product"
  self.locking_column = "version"
end

# The same table with a rule that Ruby checks.
class ValidatedProduct < ActiveRecord::Base
  self.table_name = "product"
  validates :count, numericality: { greater_than_or_equal_to: 0 }
end

class OrderItem < ActiveRecord::Base
  self.table_name = "order_item"
end

IDIOMS = {}

# ---- idioms that oversell ---------------------------------------------------------------------------

IDIOMS["naive"] = lambda do |product_id, quantity|
  Product.transaction do
    product = Product.find(product_id)
    next false if product.count < quantity
    product.update!(count: product.count - quantity)
    OrderItem.create!(product_id: product_id, quantity: quantity)
    true
  end
end

IDIOMS["decrement"] = lambda do |product_id, quantity|
  Product.transaction do
    product = Product.find(product_id)
    next false if product.count < quantity
    product.decrement!(:count, quantity)
    OrderItem.create!(product_id: product_id, quantity: quantity)
    true
  end
end

IDIOMS["late-lock"] = lambda do |product_id, quantity|
  product = Product.find(product_id)
  if product.count < quantity
    false
  else
    product.with_lock do
      product.update!(count: product.count - quantity)
      OrderItem.create!(product_id: product_id, quantity: quantity)
      true
    end
  end
end

IDIOMS["validation"] = lambda do |product_id, quantity|
  Product.transaction do
    product = ValidatedProduct.find(product_id)
    next false unless product.update(count: product.count - quantity)
    OrderItem.create!(product_id: product_id, quantity: quantity)
    true
  end
end

# ---- idioms that repair it --------------------------------------------------------------------------

IDIOMS["lock"] = lambda do |product_id, quantity|
  product = Product.find(product_id)
  product.with_lock do
    next false if product.count < quantity
    product.update!(count: product.count - quantity)
    OrderItem.create!(product_id: product_id, quantity: quantity)
    true
  end
end

IDIOMS["condition"] = lambda do |product_id, quantity|
  Product.transaction do
    taken = Product.where(id: product_id).where("count >= ?", quantity).update_all(["count = count - ?", quantity])
    next false if taken.zero?
    OrderItem.create!(product_id: product_id, quantity: quantity)
    true
  end
end

IDIOMS["version"] = lambda do |product_id, quantity|
  tries = 0
  begin
    VersionedProduct.transaction do
      product = VersionedProduct.find(product_id)
      next false if product.count < quantity
      product.update!(count: product.count - quantity)
      OrderItem.create!(product_id: product_id, quantity: quantity)
      true
    end
  rescue ActiveRecord::StaleObjectError
    retry if (tries += 1) < 10
    raise
  end
end

# ---- HTTP -------------------------------------------------------------------------------------------

idiom = IDIOMS.fetch(ENV.fetch("PROTECTION", "naive")) do |name|
  abort "shop: PROTECTION is '#{name}'. Set it to one of: #{IDIOMS.keys.join(", ")}."
end
[Product, VersionedProduct, ValidatedProduct, OrderItem].each(&:columns) # reads the catalog before the first order

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ENV.fetch("PORT").to_i, AccessLog: [],
                                 Logger: WEBrick::Log.new($stderr, WEBrick::Log::ERROR))
server.mount_proc("/healthz") { |_, response| response.body = "{}" }
server.mount_proc("/orders") do |request, response|
  body = JSON.parse(request.body)
  sold = ActiveRecord::Base.connection_pool.with_connection { idiom.call(body["product_id"], body["quantity"]) }
  response.status = sold ? 201 : 409
  response.body = "{}"
end
trap("TERM") { server.shutdown }
server.start
