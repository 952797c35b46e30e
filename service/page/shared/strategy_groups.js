// The groups in which the pages offer the strategies: where the protection is.
const GROUPS = {
  none: "None",
  process: "Process",
  database: "Database",
  redis: "Redis",
  zookeeper: "ZooKeeper",
  etcd: "etcd",
  fenced: "Fenced",
  queued: "Queued",
};
const SERVERS = { redis: "redis", redlock: "redis", zookeeper: "zookeeper", etcd: "etcd" };

// By what the service says about the row.
function groupOf(row) {
  if (row.fence !== "none") return "fenced";
  if (row.combined !== "none") return "queued";
  if (row.lock && row.lock.server === null) return "process";
  if (row.lock) return SERVERS[row.lock.server] ?? "database";
  return row.guarantee === "unsafe" ? "none" : "database";
}

// [{group, title, rows}] of the strategies in LIST, without empty groups.
export function inGroups(list) {
  const rows = Map.groupBy(list, groupOf);
  return Object.entries(GROUPS)
    .filter(([group]) => rows.has(group))
    .map(([group, title]) => ({ group, title, rows: rows.get(group) }));
}
