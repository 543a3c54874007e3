import { createHash } from 'node:crypto';
import type { Plugin, UserConfig } from 'vite';

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/**
 * Puts script and style into the page, so that the server has one file to serve, and writes the page's
 * Content-Security-Policy into policy.txt: these two pieces run and nothing else does, and the page talks
 * to the server that it came from alone.
 */
function onePage(): Plugin {
  return {
    name: 'one-page',
    apply: 'build',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const page = bundle['index.html'];
      if (page?.type !== 'asset') throw new Error('vite made no index.html');
      let script = '';
      let style = '';
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        if (file.type === 'chunk') script += file.code.trim().replaceAll('</script', '<\\/script');
        else if (name.endsWith('.css')) style += String(file.source).trim();
        else throw new Error(`${name} has no place in the page`);
        delete bundle[name];
      }
      page.source = String(page.source)
        .replace(/\s*<(script|link)[^>]*assets\/[^>]*>(<\/script>)?/g, '')
        .replace('</head>', () => `  <style>${style}</style>\n  <script type="module">${script}</script>\n  </head>`);
      const policy = [
        "default-src 'none'",
        `script-src ${hashOf(script)}`,
        `style-src ${hashOf(style)}`,
        'img-src data:',
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ];
      this.emitFile({ type: 'asset', fileName: 'policy.txt', source: policy.join('; ') });
    },
  };
}

export default {
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: { target: 'es2022', modulePreload: false, outDir: '../build/web/page', emptyOutDir: true, reportCompressedSize: false },
  plugins: [onePage()],
  // `npm run dev` shows the page as it is edited, in front of a server at its usual port.
  server: { proxy: { '/v1': 'http://127.0.0.1:8000' } },
} satisfies UserConfig;
