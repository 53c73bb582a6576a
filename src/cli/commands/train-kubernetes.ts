/** Kubernetes Jobs that each train one place. They fit the Helm chart in deploy/, installed under the name `tilewright`. */
import { createHash } from 'node:crypto';
import { version } from '../../version.js';

interface CellToTrain {
  model: string;
  collection: string;
  geocode: string;
  /** Address of the node that owns the place. */
  server: string;
  /** Memory limit of the training process, bytes. */
  memory: number;
  /** More flags of `tilewright train`, the same for all places. */
  flags: string[];
}

/** How long Kubernetes keeps an ended Job and its log. */
const TTL_SECONDS = 86_400;
const SECURITY_CONTEXT = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};

/** Memory of the process that downloads the tiles, uploads the model, and waits. 69 MB were measured. */
const CLIENT_MEMORY_BYTES = 128e6;

/**
 * A Job that trains the place in its own container, beside the node that owns the place: it reads the tiles from that node, which stores
 * the model. Kubernetes retries a failed Job once.
 */
export function kubernetesJob({ model, collection, geocode, server, memory, flags }: CellToTrain) {
  const pod = podFromUrl(server);
  const labels = {
    'app.kubernetes.io/name': 'tilewright',
    'app.kubernetes.io/component': 'training',
    'tilewright/model': model,
    'tilewright/geocode': geocode,
  };
  // Names of Jobs allow fewer characters than ids of collections.
  const suffix = createHash('sha256')
    .update(JSON.stringify([collection, flags]))
    .digest('hex')
    .slice(0, 8);
  const place = ['--collection', collection, '--geocode', geocode];
  const resources = { cpu: '1', memory: String(memory + CLIENT_MEMORY_BYTES) };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: `train-${model}-${geocode}-${suffix}`,
      ...(pod && { namespace: pod.namespace }),
      labels,
      annotations: { 'tilewright/collection': collection },
    },
    spec: {
      backoffLimit: 1,
      ttlSecondsAfterFinished: TTL_SECONDS,
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: 'Never',
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          ...(pod && { affinity: affinityTo(pod.name) }),
          containers: [
            {
              name: 'train',
              image: `tilewright:${version}`,
              args: ['train', model, '--mode', 'contained', '--here', ...place, ...flags, '--server', server],
              env: [
                {
                  name: 'TILEWRIGHT_TOKEN',
                  valueFrom: { secretKeyRef: { name: 'tilewright-auth', key: 'token' } },
                },
              ],
              resources: { requests: resources, limits: resources },
              securityContext: SECURITY_CONTEXT,
              volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
            },
          ],
          volumes: [{ name: 'tmp', emptyDir: {} }],
        },
      },
    },
  };
}

/** Parses the address that the chart gives to a node: http://POD.SERVICE.NAMESPACE.svc:8080. */
function podFromUrl(server: string): { name: string; namespace: string } | undefined {
  const [, name, namespace] = /^https?:\/\/([^.:/]+)\.[^.:/]+\.([^.:/]+)\.svc\b/.exec(server) ?? [];
  return name && namespace ? { name, namespace } : undefined;
}

/** Requires the machine of the pod, where the tiles are. The Job waits until that machine has free resources. */
const affinityTo = (pod: string) => ({
  podAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      {
        topologyKey: 'kubernetes.io/hostname',
        labelSelector: { matchLabels: { 'statefulset.kubernetes.io/pod-name': pod } },
      },
    ],
  },
});
