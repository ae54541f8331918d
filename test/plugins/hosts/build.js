// Bundles the two hosts of the tests: node build.js FOLDER. Packages come from the plugins' own lock file. React is its
// development build, which warns of what a component does wrong.
const { createRequire } = require('node:module');
const path = require('node:path');

const plugins = path.resolve(__dirname, '../../../deploy/plugins');
const webpack = createRequire(path.join(plugins, 'package.json'))('webpack');

const options = {
  mode: 'development',
  devtool: false,
  context: __dirname,
  entry: { headlamp: './headlamp.js', console: './console.js' },
  output: { path: path.resolve(process.argv[2]), filename: '[name].js' },
  resolve: { modules: [path.join(plugins, 'node_modules')] },
};

webpack(options, (error, stats) => {
  const failure = error ?? (stats.hasErrors() ? stats.toString({ preset: 'errors-warnings' }) : undefined);
  if (!failure) return;
  console.error(failure);
  process.exitCode = 1;
});
