<?php
// A small checkout with the Eloquent of Laravel, in one file. It takes the stock by the idiom that PROTECTION names, so that
// `loadtest explore samples/own/laravel/shop.json` can show which idioms oversell. docs/frameworks/laravel.md explains them.
//
// POST /orders with {"product_id":1,"quantity":1} answers 201, or 409 if there are not enough units.

require_once "Illuminate/Database/autoload.php";

use Illuminate\Database\Capsule\Manager as DB;
use Illuminate\Database\Eloquent\Model;

class Product extends Model
{
    protected $table = "product";
    public $timestamps = false;
}

class OrderItem extends Model
{
    protected $table = "order_item";
    protected $guarded = [];
    public $timestamps = false;
}

$idioms = [];

// ---- idioms that oversell ----------------------------------------------------------------------------

$idioms["naive"] = fn ($id, $quantity) => DB::transaction(function () use ($id, $quantity) {
    $product = Product::findOrFail($id);
    if ($product->count < $quantity) {
        return false;
    }
    $product->count -= $quantity;
    $product->save();
    OrderItem::create(["product_id" => $id, "quantity" => $quantity]);
    return true;
});

$idioms["decrement"] = fn ($id, $quantity) => DB::transaction(function () use ($id, $quantity) {
    $product = Product::findOrFail($id);
    if ($product->count < $quantity) {
        return false;
    }
    $product->decrement("count", $quantity);
    OrderItem::create(["product_id" => $id, "quantity" => $quantity]);
    return true;
});

$idioms["shared-lock"] = fn ($id, $quantity) => DB::transaction(function () use ($id, $quantity) {
    $product = Product::sharedLock()->findOrFail($id);
    if ($product->count < $quantity) {
        return false;
    }
    $product->count -= $quantity;
    $product->save();
    OrderItem::create(["product_id" => $id, "quantity" => $quantity]);
    return true;
});

$idioms["no-transaction"] = function ($id, $quantity) {
    $product = Product::lockForUpdate()->findOrFail($id);
    if ($product->count < $quantity) {
        return false;
    }
    $product->count -= $quantity;
    $product->save();
    OrderItem::create(["product_id" => $id, "quantity" => $quantity]);
    return true;
};

// ---- idioms that repair it ---------------------------------------------------------------------------

$idioms["lock"] = fn ($id, $quantity) => DB::transaction(function () use ($id, $quantity) {
    $product = Product::lockForUpdate()->findOrFail($id);
    if ($product->count < $quantity) {
        return false;
    }
    $product->count -= $quantity;
    $product->save();
    OrderItem::create(["product_id" => $id, "quantity" => $quantity]);
    return true;
});

$idioms["condition"] = fn ($id, $quantity) => DB::transaction(function () use ($id, $quantity) {
    $taken = Product::whereKey($id)->where("count", ">=", $quantity)->decrement("count", $quantity);
    if ($taken === 0) {
        return false;
    }
    OrderItem::create(["product_id" => $id, "quantity" => $quantity]);
    return true;
});

class Stale extends Exception
{
}

$idioms["version"] = function ($id, $quantity) {
    for ($try = 1; ; $try++) {
        try {
            return DB::transaction(function () use ($id, $quantity) {
                $product = Product::findOrFail($id);
                if ($product->count < $quantity) {
                    return false;
                }
                $written = Product::whereKey($id)->where("version", $product->version)
                    ->update(["count" => $product->count - $quantity, "version" => $product->version + 1]);
                if ($written === 0) {
                    throw new Stale();
                }
                OrderItem::create(["product_id" => $id, "quantity" => $quantity]);
                return true;
            });
        } catch (Stale $stale) {
            if ($try === 10) {
                throw $stale;
            }
        }
    }
};

// ---- HTTP --------------------------------------------------------------------------------------------

function answer($status)
{
    http_response_code($status);
    header("Content-Type: application/json");
    echo "{}";
}

if ($_SERVER["REQUEST_URI"] === "/healthz") {
    answer(200);
    return;
}

$database = parse_url(getenv("DATABASE_URL"));
$manager = new DB();
$manager->addConnection([
    "driver" => "pgsql",
    "host" => $database["host"],
    "port" => $database["port"],
    "username" => $database["user"],
    "password" => $database["pass"] ?? "",
    "database" => substr($database["path"], 1),
]);
$manager->setAsGlobal();
$manager->bootEloquent();

$wanted = json_decode(file_get_contents("php://input"), true);
$idiom = $idioms[getenv("PROTECTION") ?: "naive"] ?? null;
if ($idiom === null) {
    error_log("shop: PROTECTION is '" . getenv("PROTECTION") . "'. Set it to one of: " . implode(", ", array_keys($idioms)) . ".");
    answer(500);
    return;
}
answer($idiom($wanted["product_id"], $wanted["quantity"]) ? 201 : 409);
