/** Errors of the cluster. */
import { defineError } from '../errors.js';

export const segmentDamaged = defineError(
  'TW_DHT_SEGMENT_DAMAGED',
  500,
  'A segment of a commit or of a checkpoint in the shared store is damaged. Restore the object from a backup of the store.',
  (name: string, detail: string) => `segment ${name} cannot be read: ${detail}`,
);

export const badPlacement = defineError(
  'TW_DHT_BAD_PLACEMENT',
  500,
  'The placement document of the cluster is invalid: it was changed by hand or written by another version. Restore it, or run the version that wrote it.',
  (fault: string) =>
    `the placement document cannot be used: ${fault}; restore it, or run the version that wrote it`,
);

export const unknownNode = defineError(
  'TW_DHT_UNKNOWN_NODE',
  404,
  'The cluster has no node with this id. `tilewright node list` lists the nodes.',
  (node: string) => `the cluster has no node ${node}; "tilewright node list" lists the nodes`,
);

export const lastNode = defineError(
  'TW_DHT_LAST_NODE',
  409,
  'The last node that is not draining cannot be drained, because no other node could take over its slots. Add another node first.',
  (node: string) =>
    `node ${node} is the last one that is not draining, so no other node could take over its slots; add another node first`,
);

export const localApplyFailed = defineError(
  'TW_DHT_NOT_NOTED',
  500,
  'The change was committed, but this node could not apply it to its own folder. Do not repeat the change. Check the disk of the node and the tile store; the node applies the change once they work, at the latest after a restart.',
  (what: string, dir: string, detail: string) =>
    `${what} was committed, but could not be applied to ${dir} (${detail}); check the disk of the node and the tile store`,
);

export const nodeIdTaken = defineError(
  'TW_DHT_NODE_ID_TAKEN',
  409,
  'Another running node of the cluster has this id. Every node needs its own id and its own data folder.',
  (id: string, holder: string) =>
    `node id ${id} is in use by the node at ${holder}; start this node with another data folder or id`,
);

export const lockHeld = defineError(
  'TW_DHT_CLAIMED',
  409,
  'Another node or job is working on this scene or task. Wait until it has finished.',
  (name: string, holder: string) => `${name} is busy: ${holder} is working on it; wait until it has finished`,
);

export const lockLost = defineError(
  'TW_DHT_CLAIM_LOST',
  409,
  'The lock (claim) of a scene or task has expired or was taken over, so the work under it was not committed. Repeat the work.',
  (name: string) => `the claim of ${name} is lost, so nothing was committed; repeat the work`,
);

export const collectionConflict = defineError(
  'TW_DHT_COLLECTION_CHANGED',
  409,
  'The collection was deleted or changed during a write to it, so nothing was committed. Repeat the work if it is still wanted.',
  (id: string) =>
    `collection ${id} was changed or deleted in the meantime, so nothing was committed; repeat the work`,
);

export const entryTooLarge = defineError(
  'TW_DHT_ENTRY_TOO_LARGE',
  500,
  'An entry of the commit log is larger than the limit of the log. This is a bug in tilewright; nothing was committed.',
  (segment: string, bytes: number, most: number) =>
    `the log entry of segment ${segment} has ${bytes} bytes, and the limit is ${most}; nothing was committed`,
);

export const logDamaged = defineError(
  'TW_DHT_LOG_DAMAGED',
  500,
  'The commit log in the coordination store lacks entries, or ends before commits that this node has seen: it was restored from an old copy, or keys were deleted. Restore etcd from the tile store.',
  (detail: string) => `the commit log is damaged: ${detail}; restore etcd from the tile store`,
);

export const otherCluster = defineError(
  'TW_DHT_OTHER_CLUSTER',
  409,
  'The coordination store contains another cluster with this name, or a cluster with another format or other prefix lengths. Choose another cluster name, or use the version and settings that created it.',
  (found: string, wanted: string) =>
    `the coordination store contains the cluster ${found}, but this node belongs to ${wanted}; choose another cluster name, or use the settings that created it`,
);

export const otherCoordination = defineError(
  'TW_DHT_OTHER_COORDINATION',
  409,
  'The tile store belongs to a cluster that uses another etcd, another cluster name in it, or the data folder of a single node (`serve --store` without `--etcd`). Use the `--etcd` and `--cluster-name` of its other nodes. Only if that etcd has lost its data, or if the single node is to become a cluster: stop all nodes of the store, and run `tilewright node restore`.',
  (url: string, cluster: string, coordination: string | undefined, known: string | undefined) =>
    `the tile store ${url} belongs to cluster ${cluster}, which uses ${coordination ?? 'another etcd or cluster name'}; the etcd and cluster name of this node ${known === cluster ? 'were abandoned by that cluster with a "node restore"' : known === undefined ? 'contain no cluster' : `belong to cluster ${known}`}; first check that --store, --etcd and --cluster-name are those of its other nodes; only if that etcd has lost its data, or if a single node is to become a cluster, stop all nodes of the store and run "tilewright node restore"`,
);

export const storeNotEmpty = defineError(
  'TW_DHT_STORE_NOT_EMPTY',
  409,
  'The location given as tile store contains other objects, which a new cluster would remove as garbage: it is the data folder of a single node, or a copy of a store without its `cluster.json`. Use an empty location. `tilewright node join --data` imports a data folder into a cluster.',
  (url: string, name: string, isDataFolder: boolean) =>
    isDataFolder
      ? `${url} is not a tile store but the data folder of a node, because it has a ${name}; use an empty --store, and import the data folder with "tilewright node join --data"`
      : `${url} has objects such as ${name}, but no cluster.json, so a new cluster would remove them as garbage; use an empty --store, or restore the complete copy`,
);

export const conflictingWriter = defineError(
  'TW_DHT_OTHER_WRITER',
  500,
  'Another cluster writes to the same tile store: an entry of the commit log exists with other content. This node stops committing. Stop the nodes of one of the two clusters, check which scenes are missing in the other one, and ingest them again.',
  (seq: number, url: string) =>
    `entry ${seq} of the commit log exists in ${url} with other content, so another cluster writes to this store; this node stops committing; stop the nodes of one of the two clusters, and ingest the scenes that the other one lacks again`,
);

export const otherFolder = defineError(
  'TW_DHT_OTHER_FOLDER',
  409,
  'The data folder belongs to a node of another cluster. Give each node its own folder; it may be empty.',
  (dir: string, found: string, wanted: string) =>
    `the data folder ${dir} belongs to a node of cluster ${found}, but the store belongs to cluster ${wanted}; start the node with another --data, which may be empty`,
);

export const singleFolder = defineError(
  'TW_DHT_SINGLE_FOLDER',
  409,
  'The data folder contains tiles of a single node, which the cluster does not have. Start the node with an empty folder, and import the other folder with `tilewright node join`.',
  (dir: string) =>
    `the data folder ${dir} contains tiles that are not in a shared store; start the node with an empty --data, and import this folder with "tilewright node join"`,
);

export const folderOfCluster = defineError(
  'TW_DHT_FOLDER_OF_CLUSTER',
  409,
  'The data folder is the cache of a cluster node. It lacks files and must not be written outside of the cluster. Use the --store and --etcd of its cluster, or a running node (--server).',
  (dir: string, cluster: string) =>
    `the data folder ${dir} belongs to a node of cluster ${cluster} and cannot be used on its own; use the --store and --etcd of its cluster, or a running node with --server`,
);

export const otherFormat = defineError(
  'TW_DHT_OTHER_FORMAT',
  409,
  'Another node of the cluster runs a version with another document format. Run versions of one format on all nodes.',
  (id: string, software: string, theirs: number, ours: number) =>
    `node ${id} runs version ${software} with document format ${theirs}, and this node has format ${ours}; run versions of one format on all nodes`,
);

export const peerRefused = defineError(
  'TW_DHT_REFUSED',
  401,
  'A running node of the cluster refuses the messages of this node: the secrets differ, or the clocks are too far apart. The message gives the reason.',
  (id: string, url: string, detail: string) =>
    `node ${id} at ${url} refuses the messages of this node: ${detail}`,
);

export const manifestDamaged = defineError(
  'TW_DHT_MANIFEST_DAMAGED',
  500,
  'The object that lists the segments of a checkpoint is damaged. Restore it from a backup of the store.',
  (name: string, detail: string) => `the checkpoint manifest ${name} cannot be read: ${detail}`,
);

export const archivedEntryDamaged = defineError(
  'TW_DHT_COPY_DAMAGED',
  500,
  'The copy of a log entry in the tile store is damaged. Restore it from a backup of the store.',
  (name: string, detail: string) => `the copy ${name} of a log entry cannot be used: ${detail}`,
);

export const logArchiveIncomplete = defineError(
  'TW_DHT_COPIES_MISSING',
  500,
  'The tile store lacks copies of log entries, so etcd cannot be rebuilt completely. Restore `catalogue/log/` from a backup of the store.',
  (url: string, seq: number, last: number) =>
    `${url} has commits up to number ${last}, but number ${seq} is neither in a complete checkpoint nor among the copies of the log; nothing was written`,
);

export const nodesStillRunning = defineError(
  'TW_DHT_STILL_RUNNING',
  409,
  'etcd is rebuilt only while no node of the cluster runs. Check that `--etcd` and `--cluster-name` are the same as those of the running nodes; if they are, stop all nodes first.',
  (nodes: string) =>
    `nodes of the cluster are running: ${nodes}; if they use another etcd or cluster name, no restore is needed; otherwise stop all of them first`,
);

export const coordinationNotEmpty = defineError(
  'TW_DHT_NOT_EMPTY',
  409,
  'etcd already has keys of this cluster; a rebuild from the store needs an etcd without them. If etcd was restored from an old copy, delete the keys first (`etcdctl del --prefix /tilewright/NAME/`).',
  (key: string, count: number) =>
    `etcd has ${count} keys of a cluster of this name, such as ${key}; if they come from an old copy, delete them first (etcdctl del --prefix /tilewright/NAME/, with the cluster's name)`,
);

export const epochChanged = defineError(
  'TW_DHT_LOG_RESTORED',
  409,
  'etcd was rebuilt from the tile store while this node had no connection to it, so the data of the node may differ from the log. Restart the node.',
  (id: string) =>
    `etcd was rebuilt while node ${id} had no connection to it; the node has left the cluster, so restart it`,
);

export const slotsOutdated = defineError(
  'TW_DHT_SLOTS_OUTDATED',
  503,
  'The log no longer has all commits that the node lacks, so it loads its slots again, and cannot make changes before. Try again later.',
  (slots: number) => `this node still has to load ${slots} slots again`,
);

export const replicaBehind = defineError(
  'TW_DHT_BEHIND',
  409,
  'This node has not yet applied the commit that the request needs. Send the request to another owner, or repeat it.',
  (wanted: number, applied: number) =>
    `this node has not applied commit ${wanted} yet, only ${applied}; send the request to another owner, or repeat it`,
);

export const commitNotInLog = defineError(
  'TW_DHT_NO_COMMIT',
  502,
  'Another node named a commit that the commit log does not have. Run the same version on all nodes; if the message names one node again and again, restart that node.',
  (wanted: number, last: number) =>
    `another node named commit ${wanted}, but the commit log ends with commit ${last}`,
);

export const badQuery = defineError(
  'TW_DHT_BAD_QUESTION',
  400,
  'A query from another node does not match the schema of its kind. Run the same version on all nodes.',
  (kind: string, detail: string) =>
    `the query of kind "${kind}" cannot be answered: ${detail}; run the same version on all nodes`,
);

export const clusterDocumentDamaged = defineError(
  'TW_DHT_STORE_IDENTITY',
  500,
  'The object cluster.json of the tile store does not identify the cluster of the store. Restore it from a backup of the store.',
  (url: string, detail: string) => `cluster.json of ${url} cannot be used: ${detail}`,
);

export const logBehindStore = defineError(
  'TW_DHT_LOG_BEHIND_STORE',
  409,
  'The tile store has commits that etcd does not know. First check that `--etcd` and `--cluster-name` are right. If they are, etcd was restored from an old copy: stop all nodes, delete the keys and rebuild them from the store with `tilewright node restore`.',
  (url: string, head: number) =>
    `${url} has commits after number ${head}, where the log in etcd ends; first check that --etcd and --cluster-name are right; if they are, etcd was restored from an old copy: stop all nodes, and rebuild it from the store with "tilewright node restore"`,
);

export const badSignature = defineError(
  'TW_DHT_FOREIGN_NODE',
  401,
  'A message between nodes is not signed with the secret of this cluster. Start all nodes with the same --secret.',
  (detail: string) => `${detail}; start all nodes with the same --secret`,
);

export const otherReceiver = defineError(
  'TW_DHT_OTHER_RECEIVER',
  421,
  'A message between nodes has reached another node than the one for which it is meant. Give each node an --advertise address of its own.',
  (receiver: string, self: string) =>
    `the message is meant for node ${receiver}, and this is node ${self}; give each node an --advertise address of its own`,
);

export const damagedMessage = defineError(
  'TW_DHT_DAMAGED_MESSAGE',
  400,
  'The body of a message between nodes is not the one that was signed. The sender repeats the message.',
  () => 'the body of a message between nodes is not the one that was signed',
);

export const clockSkew = defineError(
  'TW_DHT_CLOCK_APART',
  401,
  'The clocks of two nodes are too far apart. Synchronise the clocks of all machines with a time server.',
  (seconds: number) =>
    `the clocks of the two nodes are ${seconds} s apart; synchronise both with a time server (NTP)`,
);

export const clockOffsetWarning = defineError(
  'TW_DHT_CLOCK_OFFSET',
  500,
  'The clock of another node differs from the clock of this node. From a difference of one minute on, the nodes refuse the messages of each other, and answers lack the tiles of the other node. Synchronise the clocks of all machines with a time server (NTP).',
  (id: string, url: string, seconds: number, limit: number) =>
    `the clock of node ${id} at ${url} is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} the clock of this node; ` +
    `from ${limit} s on the nodes refuse the messages of each other: synchronise the clocks of both machines with a time server (NTP)`,
);

export const peerFailed = defineError(
  'TW_DHT_PEER',
  502,
  'Another node of the cluster did not answer, or answered with an error. Other owners are asked instead if there are any.',
  (id: string, url: string, detail: string) => `node ${id} at ${url}: ${detail}`,
);

export const peerUnknown = defineError(
  'TW_DHT_PEER_UNKNOWN',
  502,
  'A node of the placement has not been seen since this node started, so its address is unknown. Other owners are asked instead if there are any.',
  (id: string) => `the address of node ${id} is not known yet`,
);

export const unknownQuery = defineError(
  'TW_DHT_QUESTION',
  501,
  'A node received a kind of query that it does not know. Run the same version on all nodes.',
  (kind: string) => `this node does not know queries of kind "${kind}"; run the same version on all nodes`,
);

export const slotNotHeld = defineError(
  'TW_DHT_NOT_HELD',
  409,
  'This node does not hold a slot of the query. The placement has changed; repeat the query.',
  (slot: number) => `this node does not hold slot ${slot}; the placement has changed, so repeat the query`,
);

export const badSlots = defineError(
  'TW_DHT_BAD_SLOTS',
  400,
  'A list of slots in a message or record of the cluster is malformed. All nodes must run the same version.',
  (text: string) => `"${text.slice(0, 60)}" is not a list of slots; run the same version on all nodes`,
);

export const slotSizesUnknown = defineError(
  'TW_DHT_BYTES_UNKNOWN',
  503,
  'A rebalance needs the size of every slot, and no node reported the sizes of some: nodes are unreachable, or still loading or counting. Try again when all nodes are running.',
  (slots: number) =>
    `no node reported the size of ${slots} slots; rebalance when all nodes are running and have loaded their slots`,
);

export const noCluster = defineError(
  'TW_DHT_NO_CLUSTER',
  404,
  'The tile store does not belong to a cluster yet. Start a node with this --store and --etcd first.',
  (url: string) => `${url} does not belong to a cluster yet; start a node with this --store and --etcd first`,
);

export const importClusterNode = defineError(
  'TW_DHT_MOVE_IN_NODE',
  409,
  'The data folder belongs to a node of a cluster, so its content is already in that cluster.',
  (dir: string, cluster: string) =>
    `${dir} is the folder of a node of cluster ${cluster}; there is nothing to import`,
);

export const importCellsDiffer = defineError(
  'TW_DHT_MOVE_IN_CELLS',
  409,
  'A collection of the data folder has other cells than the collection with the same id in the cluster, so their tiles would not stack. Nothing was imported. Ingest its scenes into the cluster as another collection, and delete it from a copy of the folder.',
  (collections: string[]) =>
    `nothing was imported, because these collections have other cells than those of the cluster: ${collections.join('; ')}; ingest their scenes into the cluster under another --collection, and delete them from a copy of the folder`,
);

export const importFileDamaged = defineError(
  'TW_DHT_MOVE_IN_FILE',
  422,
  'A file or record to be imported into the cluster is missing or damaged. The rest is imported. `tilewright verify` lists all damage; ingest the scene again.',
  (what: string, detail: string) => `${what} cannot be imported: ${detail}; ingest its scene again`,
);
