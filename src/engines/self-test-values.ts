/** Printed by test/fixtures/training/reference_self_test.py. */

/** Name of a result of the self-test, two projections of it, and its Euclidean norm. */
type Expected = readonly [name: string, first: number, second: number, norm: number];

// 62 of the 512 windows of the maximum pooling hold no positive value.
// biome-ignore format: a result a line
export const EXPECTED: readonly Expected[] = [
  ['loss', -16.0836133311, -6.46323287297, 33.2053408616],
  ['absolute error', -11.5169829066, -4.6281231081, 23.7773275966],
  ['squared error', -3.11920613403, -1.25345935693, 6.43974091929],
  ['softplus', -0.990481245782, -0.39802691199, 2.04489294204],
  ['error of the mean', -0.0311196582313, -0.012505498232, 0.0642479297281],
  ['cross entropy', -0.425823386439, -0.17111799772, 0.87913147391],
  ['gradient of mix/kernel', 0.223784328524, -5.83735802769, 6.63592730279],
  ['gradient of mix/bias', 1.30659016366, -2.71582114362, 8.27303174828],
  ['gradient of first/kernel', -8.35056489837, -10.3938012769, 17.8147612766],
  ['gradient of first/bias', -0.581302163411, -1.13669301709, 8.79783770385],
  ['gradient of strided/kernel', -0.0342814287603, 6.14366727125, 12.0075540899],
  ['gradient of norm/gamma', -4.6936943423, 0.384960639343, 6.70299374793],
  ['gradient of norm/beta', -5.69542854192, -0.162153754252, 9.20623029645],
  ['gradient of dilated/kernel', -2.42410271805, -0.194914242591, 27.4672538665],
  ['gradient of scale/kernel', -4.72963063163, 4.12714193973, 9.07872144614],
  ['gradient of scale/bias', -7.71640607928, 2.62114865074, 9.17640687045],
  ['gradient of weight/kernel', -4.04622016448, 3.42406391174, 6.31448592994],
  ['gradient of weight/bias', -1.16321180149, -0.467439038658, 2.40150291901],
  ['gradient of tiled/kernel', 43.0973600559, -67.2495001228, 74.6087668433],
  ['gradient of tiled/bias', 3.74837139855, 1.81604062178, 10.6764218122],
  ['gradient of up/kernel', 6.3500538302, -17.0905735052, 26.7804495867],
  ['gradient of up/bias', 0.224709088225, 0.412644352915, 13.1663985668],
  ['gradient of map/kernel', -22.9872426603, -12.2863059784, 42.6796105314],
  ['gradient of map/bias', 7.55431800406, 3.03571812202, 15.5962282317],
  ['gradient of hidden/kernel', -0.32859296605, -0.0531854271956, 0.394922949489],
  ['gradient of hidden/bias', -0.0463919867957, -0.0494439579569, 0.0984439944461],
  ['gradient of mean/kernel', 0.0611832431827, -0.120874739229, 0.891135826334],
  ['gradient of mean/bias', 0.245547346594, 0.098673702837, 0.506943506628],
  ['gradient of bands/kernel', 1.17953661064, 2.24293007202, 2.2511384884],
  ['gradient of bands/bias', -0.0302129893026, 0.11058584789, 0.231479390435],
  ['gradient of classes/kernel', -1.23754797096, 0.665955899792, 3.09100638703],
  ['gradient of classes/bias', 0.132602995576, 0.0807875367465, 0.3006584513],
  ['predicted map', -5.66235735431, -4.6733544894, 23.1469927709],
  ['predicted mean', 0.144167813919, 0.0579341305318, 0.297640915875],
  ['predicted classes', -0.101381770675, 0.230506460422, 0.637824999466],
  ['largest class', -0.685184220176, -0.275342678584, 1.4145935441],
  ['variable after Adam', 0.542590402904, 2.66052131655, 3.03300475451],
  ['first moment after Adam', -4.51141242331, -4.69339760655, 10.2047841859],
  ['second moment after Adam', -1.70976892042, 0.238805352202, 8.18646991775],
];
