import type { ApiError } from './api';
import type { Turn } from './conversation';
import { Figures } from './figures';
import { RetryIcon } from './icons';

/** In the server's words, which mostly begin with the part at fault. */
function Trouble({ error: { message, param } }: { error: ApiError }) {
  const rest = param && message.startsWith(param) ? message.slice(param.length) : `${param ? ' ' : ''}${message}`;
  return <p class="trouble" role="alert">{param && <code>{param}</code>}{rest}</p>;
}

interface Props {
  turn: Turn;
  number: number;
  /** Of the last turn, when its answer has ended. */
  onRetry: (() => void) | undefined;
}

export function TurnView({ turn: { question, answer }, number, onRetry }: Props) {
  return (
    <article class="turn">
      <h2 class="unseen">Question {number}</h2>
      <div class="question">
        {question.pictures.length > 0 && (
          <div class="pictures">
            {question.pictures.map((p) => <img key={p.id} src={p.uri} alt={p.name} />)}
          </div>
        )}
        {question.text && <p>{question.text}</p>}
      </div>
      <h3 class="unseen">Answer {number}</h3>
      <div class={`answer ${answer.state}`} aria-busy={answer.state === 'waiting' || answer.state === 'streaming'}>
        {answer.text && <p>{answer.text}</p>}
        {answer.state === 'waiting' && <p class="dots"><i /><i /><i /></p>}
        {answer.error && <Trouble error={answer.error} />}
        {answer.state === 'stopped' && <p class="note">Stopped.</p>}
        {answer.finish === 'length' && <p class="note">The answer was cut at its longest length.</p>}
      </div>
      <Figures answer={answer} />
      {onRetry && <button type="button" class="quiet" onClick={onRetry}><RetryIcon />Try again</button>}
    </article>
  );
}
