/** Trainings of single places as Jobs of Kubernetes. They fit the chart in deploy/, installed under the name `tilewright`. */
import { createHash } from 'node:crypto';
import { version } from '../version.js';

export interface PlaceToTrain {
  model: string;
  collection: string;
  geocode: string;
  /** Address of the node that holds it. */
  server: string;
  /** More flags of `tilewright train`, by which all places are trained alike. */
  flags: string[];
}

/** Seconds that a Job and its log stay after its end. */
const KEPT = 86_400;
const RESTRICTED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};

/** Asks the node to train the place, within limits there, and waits. It is asked once more where that fails. */
export function trainingJob({ model, collection, geocode, server, flags }: PlaceToTrain) {
  const pod = podOf(server);
  const labels = {
    'app.kubernetes.io/name': 'tilewright',
    'app.kubernetes.io/component': 'training',
    'tilewright/model': model,
    'tilewright/geocode': geocode,
  };
  // Ids of collections may have letters that names must not have.
  const suffix = createHash('sha256')
    .update(JSON.stringify([collection, flags]))
    .digest('hex')
    .slice(0, 8);
  const place = ['--collection', collection, '--geocode', geocode];
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
      ttlSecondsAfterFinished: KEPT,
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: 'Never',
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          ...(pod && { affinity: nextTo(pod.name) }),
          containers: [
            {
              name: 'train',
              image: `tilewright:${version}`,
              args: ['train', model, '--mode', 'contained', ...place, ...flags, '--server', server],
              env: [
                {
                  name: 'TILEWRIGHT_TOKEN',
                  valueFrom: { secretKeyRef: { name: 'tilewright-auth', key: 'token' } },
                },
              ],
              // It only asks and waits: what the training takes is of the node's pod.
              resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '256Mi' } },
              securityContext: RESTRICTED,
            },
          ],
        },
      },
    },
  };
}

/** Of the address that the chart gives a node: http://POD.SERVICE.NAMESPACE.svc:8080. */
function podOf(server: string): { name: string; namespace: string } | undefined {
  const [, name, namespace] = /^https?:\/\/([^.:/]+)\.[^.:/]+\.([^.:/]+)\.svc\b/.exec(server) ?? [];
  return name && namespace ? { name, namespace } : undefined;
}

const nextTo = (pod: string) => ({
  podAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        podAffinityTerm: {
          topologyKey: 'kubernetes.io/hostname',
          labelSelector: { matchLabels: { 'statefulset.kubernetes.io/pod-name': pod } },
        },
      },
    ],
  },
});
