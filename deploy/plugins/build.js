// Builds both plugins: node build.js [--out FOLDER] [--version VERSION]
//
// TypeScript checks and compiles the sources, webpack bundles them:
//   FOLDER/headlamp/evictrail  what Headlamp wants in its folder of plugins: main.js, package.json
//   FOLDER/console             a kustomization, with the files that the console loads in dist
// Nothing of the machine, the folder or the clock goes into them.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import sdk from '@openshift-console/dynamic-plugin-sdk-webpack';
import webpack from 'webpack';

const here = path.dirname(fileURLToPath(import.meta.url));
process.chdir(here); // the console's plugin looks for package.json where it runs

const { values: flags } = parseArgs({
  options: { out: { type: 'string', default: '../../bin/plugins' }, version: { type: 'string', default: '0.0.0' } },
});
const out = path.resolve(flags.out);
const compiled = path.join(out, 'compiled');
const version = readVersion(flags.version);

for (const folder of ['compiled', 'headlamp', 'console'])
  fs.rmSync(path.join(out, folder), { recursive: true, force: true });
execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '--outDir', compiled], { stdio: 'inherit' });
await buildHeadlamp(path.join(out, 'headlamp', 'evictrail'));
await buildConsole(path.join(out, 'console'));

/** Consoles read versions as semantic ones: v0.1.0-3-gabc is 0.1.0-3-gabc, and what is none comes before all. */
function readVersion(text) {
  const bare = text.replace(/^v/, '');
  return /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(bare) ? bare : `0.0.0-${bare.replace(/[^0-9A-Za-z-]/g, '-')}`;
}

/** Headlamp evaluates one script, with all that it shares in the global pluginLib. */
async function buildHeadlamp(folder) {
  await runWebpack({
    entry: './headlamp/main.js',
    output: { path: folder, filename: 'main.js' },
    externals: { react: 'pluginLib.React', '@kinvolk/headlamp-plugin/lib': 'pluginLib' },
  });
  const manifest = JSON.parse(fs.readFileSync('headlamp/package.json', 'utf8'));
  fs.writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify({ ...manifest, version }, null, 2)}\n`);
}

/** The console loads a container of module federation, by the manifest beside it. */
async function buildConsole(folder) {
  await runWebpack({
    entry: {}, // the console's plugin adds its own
    output: { path: path.join(folder, 'dist'), chunkFilename: '[name]-chunk.js' },
    plugins: [
      new sdk.ConsoleRemotePlugin({
        pluginMetadata: {
          name: 'evictrail',
          version,
          displayName: 'evictrail',
          description: 'Why a VM moves, does not move, or does not stop',
          exposedModules: { Tab: './console/tab.js' },
          dependencies: { '@console/pluginAPI': '>=4.22.0-0' },
        },
        extensions: JSON.parse(fs.readFileSync('console/extensions.json', 'utf8')),
      }),
    ],
  });
  for (const name of ['kustomization.yaml', 'consoleplugin.yaml', 'server.yaml', 'nginx.conf', 'settings.json']) {
    fs.copyFileSync(path.join('console', name), path.join(folder, name));
  }
}

/** Bundles compiled sources; warnings are errors. */
function runWebpack(options) {
  const common = { mode: 'production', target: ['web', 'es2020'], context: compiled, devtool: false };
  return new Promise((resolve, reject) => {
    webpack({ ...common, ...options }, (error, stats) => {
      if (error) return reject(error);
      if (stats.hasErrors() || stats.hasWarnings())
        return reject(new Error(stats.toString({ preset: 'errors-warnings' })));
      return resolve();
    });
  });
}
