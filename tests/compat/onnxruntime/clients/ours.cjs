// Node requires this before a test's program. When the process ends, status 9 says that the dynamic linker took another
// libonnxruntime than troupe's: a program on its own library would pass all comparisons.
const fs = require('node:fs');

process.on('exit', () => {
  const libraries = fs.readFileSync('/proc/self/maps', 'utf8').match(/\/\S*\/libonnxruntime\.so\S*/g) ?? [];
  const others = new Set(libraries.filter(file => !file.includes('/troupe/onnxruntime/')));
  if (libraries.length > 0 && others.size === 0)
    return;
  console.error(`not on troupe's library but on ${[...others].join(', ') || 'none of that name'}`);
  process.exitCode = 9;
});
