import { defineError } from '../errors.js';

export const segmentDamaged = defineError(
  'TW_DHT_SEGMENT_DAMAGED',
  500,
  'A segment of the commit log in the shared store is damaged. Restore the object from a copy of the store.',
  (name: string, detail: string) => `segment ${name} of the commit log cannot be read: ${detail}`,
);

export const badPlacement = defineError(
  'TW_DHT_BAD_PLACEMENT',
  500,
  'The placement document of the cluster is not what a node writes: it was changed by hand, or by another version. Restore it, or run the version that wrote it.',
  (what: string) =>
    `the placement document cannot be used: ${what}; restore it, or run the version that wrote it`,
);

export const unknownNode = defineError(
  'TW_DHT_UNKNOWN_NODE',
  404,
  'No node of this id is in the cluster. `tilewright node list` names them.',
  (node: string) => `there is no node ${node} in the cluster; "tilewright node list" names them`,
);

export const lastNode = defineError(
  'TW_DHT_LAST_NODE',
  409,
  'The last node that is not draining cannot be drained: nothing could take over its slots. Let another join first.',
  (node: string) =>
    `node ${node} is the last one that is not draining, so nothing could take over its slots; let another join first`,
);

export const localApplyFailed = defineError(
  'TW_DHT_NOT_NOTED',
  500,
  'The change was committed, but this node could not apply it to its own folder. Do not repeat the change. Look at the disk of the node and at the tile store; the node applies the change once they work, at the latest after a restart.',
  (what: string, dir: string, detail: string) =>
    `${what} was committed, but could not be applied to ${dir} (${detail}); look at the disk of the node and at the tile store`,
);

export const nodeIdTaken = defineError(
  'TW_DHT_NODE_ID_TAKEN',
  409,
  'Another running node of the cluster has this id. Give every node an id and a data folder of its own.',
  (id: string, holder: string) =>
    `node id ${id} is in use by the node at ${holder}; start this one with another data folder or id`,
);

export const lockHeld = defineError(
  'TW_DHT_CLAIMED',
  409,
  'Another node or job works on this scene or share of a job. Wait until it has ended.',
  (name: string, holder: string) => `${name} is busy: ${holder} works on it; wait until it has ended`,
);

export const lockLost = defineError(
  'TW_DHT_CLAIM_LOST',
  409,
  'The claim of a scene or share of a job has expired or was taken by another, so what was made under it was not committed. Do the work again.',
  (name: string) => `the claim of ${name} is lost, so nothing was committed; do the work again`,
);

export const collectionConflict = defineError(
  'TW_DHT_COLLECTION_CHANGED',
  409,
  'The collection was deleted or changed while a write to it was under way, so nothing was committed. Do the work again if it is still wanted.',
  (id: string) =>
    `collection ${id} was changed or deleted meanwhile, so nothing was committed; do the work again`,
);

export const entryTooLarge = defineError(
  'TW_DHT_ENTRY_TOO_LARGE',
  500,
  'An entry of the commit log is larger than the log takes. This is a fault in the program; nothing was committed.',
  (segment: string, bytes: number, most: number) =>
    `the log entry of segment ${segment} has ${bytes} bytes, but at most ${most} are taken; nothing was committed`,
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
  'The coordination store holds another cluster under this name, or one with another format or other prefix lengths. Choose another cluster name, or the version and settings that made it.',
  (found: string, wanted: string) =>
    `the coordination store holds the cluster ${found}, but this node is of ${wanted}; choose another cluster name, or the settings that made it`,
);

export const otherCoordination = defineError(
  'TW_DHT_OTHER_COORDINATION',
  409,
  'The tile store is of a cluster whose nodes agree by another etcd, by another name in it, or by the data folder of a node that is alone (`serve --store` without `--etcd`). Give the `--etcd` and `--cluster-name` that its other nodes have. Only where that etcd has lost its data, or the node that was alone is to become a cluster: stop all nodes of the store, and run `tilewright node restore`.',
  (url: string, cluster: string, coordination: string | undefined, known: string | undefined) =>
    `the tile store ${url} is of cluster ${cluster}, whose nodes agree by ${coordination ?? 'another etcd or cluster name'}; what this node was given ${known === cluster ? 'was left by that cluster with a "node restore"' : known === undefined ? 'knows no cluster' : `is of cluster ${known}`}; first look whether --store, --etcd and --cluster-name are those of its other nodes; only if that etcd has lost its data, or a node that was alone is to become one of several, stop all nodes of the store and run "tilewright node restore"`,
);

export const storeNotEmpty = defineError(
  'TW_DHT_STORE_NOT_EMPTY',
  409,
  'The place that was given for a tile store has other objects, which a new cluster would sweep away as leftovers: it is the data folder of a node that was alone, or a copy of a store without its `cluster.json`. Give an empty place. A data folder is moved into a cluster by `tilewright node join --data`.',
  (url: string, name: string, isDataFolder: boolean) =>
    isDataFolder
      ? `${url} is no tile store but the data folder of a node, which has a ${name}; give an empty place by --store, and move the data folder in with "tilewright node join --data"`
      : `${url} has objects such as ${name}, but no cluster.json, so a new cluster would remove them as leftovers; give an empty place by --store, or restore the whole copy`,
);

export const conflictingWriter = defineError(
  'TW_DHT_OTHER_WRITER',
  500,
  'Another cluster writes to the same tile store: an entry of the commit log is there with other content. This node commits nothing more. Stop the nodes of one of the two clusters, and look which scenes are missing in the other one: they are to be ingested again.',
  (seq: number, url: string) =>
    `entry ${seq} of the commit log is in ${url} with other content, so another cluster writes to this store; this node commits nothing more; stop the nodes of one of the two, and ingest again what the other one lacks`,
);

export const otherFolder = defineError(
  'TW_DHT_OTHER_FOLDER',
  409,
  'The data folder is of a node of another cluster. Give each node a folder of its own; an empty one will do.',
  (dir: string, found: string, wanted: string) =>
    `the data folder ${dir} is of a node of cluster ${found}, and the store is that of cluster ${wanted}; start the node with another --data, which may be empty`,
);

export const singleFolder = defineError(
  'TW_DHT_SINGLE_FOLDER',
  409,
  'The data folder holds tiles of a node that was alone, which the cluster does not have. Start the node with an empty folder, and move the other one in with `tilewright node join`.',
  (dir: string) =>
    `the data folder ${dir} holds tiles that are in no shared store; start the node with an empty --data, and move this one in with "tilewright node join"`,
);

export const folderOfCluster = defineError(
  'TW_DHT_FOLDER_OF_CLUSTER',
  409,
  'The data folder is a cache of a node of a cluster, so that it lacks files and must not be written alone. Start it with the --store and --etcd of its cluster, or ask a running node (--server).',
  (dir: string, cluster: string) =>
    `the data folder ${dir} is of a node of cluster ${cluster}, which cannot be used alone; give the --store and --etcd of its cluster, or ask a running node by --server`,
);

export const otherFormat = defineError(
  'TW_DHT_OTHER_FORMAT',
  409,
  'Another node of the cluster runs a version that writes other documents. Run versions of one format on all nodes.',
  (id: string, software: string, theirs: number, ours: number) =>
    `node ${id} runs version ${software}, which writes format ${theirs} of the documents of the cluster, and this node writes format ${ours}; run versions of one format on all nodes`,
);

export const peerRefused = defineError(
  'TW_DHT_REFUSED',
  401,
  'A running node of the cluster refuses the messages of this one: the secrets differ, or the clocks are too far apart. The message says which.',
  (id: string, url: string, detail: string) =>
    `node ${id} at ${url} refuses messages of the node that is being started: ${detail}`,
);

export const manifestDamaged = defineError(
  'TW_DHT_MANIFEST_DAMAGED',
  500,
  'The object that names the parts of a checkpoint is damaged. Restore it from a copy of the store.',
  (name: string, detail: string) => `the checkpoint manifest ${name} cannot be read: ${detail}`,
);

export const archivedEntryDamaged = defineError(
  'TW_DHT_COPY_DAMAGED',
  500,
  'The copy of a log entry in the tile store is damaged. Restore it from a copy of the store.',
  (name: string, detail: string) => `the copy ${name} of a log entry cannot be used: ${detail}`,
);

export const logArchiveIncomplete = defineError(
  'TW_DHT_COPIES_MISSING',
  500,
  'The tile store lacks copies of log entries, so that etcd cannot be rebuilt from it as a whole. Restore `catalogue/log/` from a copy of the store.',
  (url: string, seq: number, last: number) =>
    `${url} has commits up to number ${last}, but number ${seq} is neither in a whole checkpoint nor among the copies of the log; nothing was written`,
);

export const nodesStillRunning = defineError(
  'TW_DHT_STILL_RUNNING',
  409,
  'etcd is rebuilt only while no node of the cluster runs. Look whether `--etcd` and `--cluster-name` are those of the nodes that run; if they are, stop all nodes first.',
  (nodes: string) =>
    `nodes of the cluster run: ${nodes}; if they agree by another etcd or cluster name, nothing is to be restored; else stop all of them first`,
);

export const coordinationNotEmpty = defineError(
  'TW_DHT_NOT_EMPTY',
  409,
  'etcd has keys of this cluster already, and only an etcd without them is rebuilt from the store. If it was restored from an old copy, delete the keys first (`etcdctl del --prefix /tilewright/NAME/`).',
  (key: string, count: number) =>
    `etcd has ${count} keys of a cluster of this name, such as ${key}; where they are of an old copy, delete them first (etcdctl del --prefix /tilewright/NAME/, with the cluster's name)`,
);

export const epochChanged = defineError(
  'TW_DHT_LOG_RESTORED',
  409,
  'etcd was rebuilt from the tile store while this node was cut off from it, so that what the node holds may not be what the log says. Start it again.',
  (id: string) =>
    `etcd was rebuilt while node ${id} was cut off; the node has left the cluster, so start it again`,
);

export const replicaBehind = defineError(
  'TW_DHT_BEHIND',
  409,
  'This node has not yet applied the commit that the request asks for. Ask another owner, or again.',
  (wanted: number, applied: number) =>
    `commit ${wanted} is not applied here yet (${applied} is); ask another owner, or again`,
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
  'A question from another node does not have the form of its kind. Run the same version on all nodes.',
  (kind: string, detail: string) =>
    `the question of kind "${kind}" cannot be answered: ${detail}; run the same version on all nodes`,
);

export const clusterDocumentDamaged = defineError(
  'TW_DHT_STORE_IDENTITY',
  500,
  'The object cluster.json of the tile store does not say which cluster the store belongs to. Restore it from a copy of the store.',
  (url: string, detail: string) => `cluster.json of ${url} cannot be used: ${detail}`,
);

export const logBehindStore = defineError(
  'TW_DHT_LOG_BEHIND_STORE',
  409,
  'The tile store holds commits that etcd does not know. Look first whether `--etcd` and `--cluster-name` are right. Where they are, etcd was restored from an old copy: stop all nodes, delete its keys and rebuild them from the store by `tilewright node restore`.',
  (url: string, head: number) =>
    `${url} holds commits after number ${head}, where the log of etcd ends; first look whether --etcd and --cluster-name are right; where they are, etcd was restored from an old copy: stop all nodes, and rebuild it from the store by "tilewright node restore"`,
);

export const badSignature = defineError(
  'TW_DHT_FOREIGN_NODE',
  401,
  'A message between nodes is not signed by the secret of this cluster. Start all nodes with the same --secret.',
  (detail: string) => `${detail}; start all nodes with the same --secret`,
);

export const clockSkew = defineError(
  'TW_DHT_CLOCK_APART',
  401,
  'The clocks of two nodes are too far apart. Let all machines take their time from a time server.',
  (seconds: number) =>
    `the clocks of the two nodes are ${seconds} s apart; let both take their time from a time server`,
);

export const peerFailed = defineError(
  'TW_DHT_PEER',
  502,
  'Another node of the cluster did not answer, or answered with an error. Others are asked where there are some.',
  (id: string, url: string, detail: string, _status?: number) => `node ${id} at ${url}: ${detail}`,
);

export const peerUnknown = defineError(
  'TW_DHT_PEER_UNKNOWN',
  502,
  'A node of the placement has not been seen since this one runs, so nobody knows its address. Others are asked where there are some.',
  (id: string) => `the address of node ${id} is not known here yet`,
);

export const unknownQuery = defineError(
  'TW_DHT_QUESTION',
  501,
  'A node was asked by another one what it cannot answer. Run the same version on all nodes.',
  (kind: string) =>
    `nobody can answer a question of the kind "${kind}" here; run the same version on all nodes`,
);

export const slotNotHeld = defineError(
  'TW_DHT_NOT_HELD',
  409,
  'This node does not hold slots that it is asked for. The placement has changed; ask again.',
  (slot: number) => `slot ${slot} is not held here; the placement has changed, so ask again`,
);

export const badSlots = defineError(
  'TW_DHT_BAD_SLOTS',
  400,
  'A text that names slots, in a message or a record of the cluster, is none. All nodes must run the same version.',
  (text: string) => `"${text.slice(0, 60)}" names no slots; run the same version on all nodes`,
);

export const slotSizesUnknown = defineError(
  'TW_DHT_BYTES_UNKNOWN',
  503,
  'A rebalance needs the bytes of every slot, and no node tells those of some: nodes are away, or still load or count. Try again when all run.',
  (slots: number) =>
    `no node tells the bytes of ${slots} slots; rebalance when all nodes run and have loaded`,
);

export const noCluster = defineError(
  'TW_DHT_NO_CLUSTER',
  404,
  'The tile store belongs to no cluster yet. Start a node with this --store and --etcd first.',
  (url: string) => `${url} belongs to no cluster yet; start a node with this --store and --etcd first`,
);

export const importClusterNode = defineError(
  'TW_DHT_MOVE_IN_NODE',
  409,
  'The data folder is that of a node of a cluster, so what it holds is in that cluster already.',
  (dir: string, cluster: string) =>
    `${dir} is the folder of a node of cluster ${cluster}; nothing is to be moved`,
);

export const importCellsDiffer = defineError(
  'TW_DHT_MOVE_IN_CELLS',
  409,
  'A collection of the data folder has other cells than the one of its name in the cluster, so that their tiles would not lie on each other. Nothing was moved. Ingest its scenes into the cluster as another collection, and delete it from a copy of the folder.',
  (collections: string[]) =>
    `nothing was moved, because these collections have other cells than those of the cluster: ${collections.join('; ')}; ingest their scenes into the cluster under another --collection, and delete them from a copy of the folder`,
);

export const importFileDamaged = defineError(
  'TW_DHT_MOVE_IN_FILE',
  422,
  'A file or record that was to be moved into the cluster is missing or damaged. The rest is moved. `tilewright verify` lists all damage; ingest the scene again.',
  (what: string, detail: string) => `${what} cannot be moved: ${detail}; ingest its scene again`,
);
